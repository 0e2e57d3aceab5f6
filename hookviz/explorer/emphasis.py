"""Read the ``**bold**`` words of a sentence, whose translations keep the signs."""

import re

from hookviz.explorer.glossary import explained

Part = tuple[str, str, bool]
"""A piece of a sentence, what a word of the glossary means or ``""``, and whether it is bold."""

_BOLD = re.compile(r"\*\*(.+?)\*\*")


def emphasised(sentence: str) -> list[Part]:
    """Split a sentence into its parts, with the glossary's words explained.

    A part begins as one of `explained` does, so that who reads no third value shows it plainly.

    >>> emphasised("**A** is here")
    [('A', '', True), (' is here', '', False)]
    """
    pieces = _BOLD.split(sentence)  # every other one is bold
    return [
        (text, meaning, bool(at % 2))
        for at, piece in enumerate(pieces)
        for text, meaning in explained(piece)
    ]


def plainly(sentence: str) -> str:
    """Return a sentence without the signs for bold words.

    >>> plainly("**A** is here")
    'A is here'
    """
    return _BOLD.sub(r"\1", sentence)
