"""Make and read the short codes by which pupils join: letters and digits that nobody mixes up."""

import secrets

LETTERS = "ABCDEFGHJKMNPQRTUVWXYZ234679"
"""Without I, L, O, S and 0, 1, 5, 8, which look like others on a projector."""

LENGTH = 6
_LONGEST = 40  # letters that are looked at of what was typed


def new_code(server: int | None = None) -> str:
    """Make a code that nobody can foresee.

    Its first letter says which of several servers made it, from 0; None where there is only one.
    """
    letters = [secrets.choice(LETTERS) for _ in range(LENGTH)]
    if server is not None:
        letters[0] = letter_of(server)
    return "".join(letters)


def read_code(typed: str) -> str:
    """Read a code as typed, in any case and with any signs between; empty where it is none.

    >>> read_code(" k7m-p3x ")
    'K7MP3X'
    """
    code = "".join(letter for letter in typed[:_LONGEST].upper() if letter.isalnum())
    return code if len(code) == LENGTH and set(code) <= set(LETTERS) else ""


def shown_code(code: str) -> str:
    """Write the code as it is read aloud: in two halves.

    >>> shown_code("K7MP3X")
    'K7M P3X'
    """
    return f"{code[:3]} {code[3:]}"


def letter_of(server: int) -> str:
    """Return the letter that the codes of one of several servers begin with."""
    return LETTERS[server % len(LETTERS)]


def server_of(code: str) -> int:
    """Return which of several servers made the code, from 0."""
    return LETTERS.index(code[0])
