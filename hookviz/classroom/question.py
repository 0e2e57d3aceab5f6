"""Read a question to the class: two to six answers to choose one of, or words of one's own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from hookviz.classroom.riddle import Riddle
from hookviz.errors import ClassroomError
from hookviz.language.saying import say

FEWEST, MOST = 2, 6
"""Answers of a question."""
LONGEST_QUESTION, LONGEST_ANSWER = 300, 120
"""Letters."""
LONGEST_GUESS = 40
"""Letters of an answer in a pupil's own words."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Question:
    """Question to a class.

    Attributes:
        number: tells it from every other question of this process.
        words: what is asked; empty for a riddle, which asks the same each time.
        answers: to choose one of; none where the class answers in its own words.
        right: the position of the right answer; None where that is not known.
        is_hidden: whether the teacher's screen shows no votes until the question is closed.
        riddle: the channel that is guessed, if that is the question.
    """

    number: int
    words: str
    answers: tuple[str, ...]
    right: int | None = None
    is_hidden: bool = False
    riddle: Riddle | None = None

    def is_like(self, other: "Question | None") -> bool:
        """Return whether the same is asked."""
        return other is not None and (self.words, self.answers) == (other.words, other.answers)


def read_question(
    words: str, answers: Iterable[str], *, right: int | None = None, is_hidden: bool = False
) -> Question:
    """Read the question that a teacher typed; answers without a letter are left out.

    Args:
        words: what is asked.
        answers: to choose one of.
        right: the position of the right one among those that have a letter, if there is one.
        is_hidden: whether the votes are hidden until the question is closed.

    Raises:
        ClassroomError: nothing is asked, answers are too few, too many or alike, it is too long, or
            there is no such right answer.
    """
    words = one_line(words)
    lines = tuple(filter(None, map(one_line, answers)))
    if not words:
        raise ClassroomError(say("The question has no words yet."))
    if not FEWEST <= len(lines) <= MOST:
        raise ClassroomError(
            say(
                "A question needs {minimum} to {maximum} answers, one a line; this one has "
                "{count}.",
                minimum=FEWEST,
                maximum=MOST,
                count=len(lines),
            )
        )
    _check_length(words, LONGEST_QUESTION)
    check_answers(lines)
    if right is not None and not 0 <= right < len(lines):
        raise ClassroomError(
            say(
                "There is no answer {number} that could be right: there are {count}.",
                number=right + 1,
                count=len(lines),
            )
        )
    return Question(next(_numbers), words, lines, right, is_hidden)


def ask_riddle(riddle: Riddle, *, is_hidden: bool = True) -> Question:
    """Ask which of the riddle's names is right, or in words of one's own where it has none."""
    return Question(next(_numbers), "", riddle.names, riddle.right, is_hidden, riddle)


def check_answers(lines: Sequence[str]) -> None:
    """Check answers to choose one of.

    Raises:
        ClassroomError: two are alike, or one is too long.
    """
    twice = next((answer for answer in lines if lines.count(answer) > 1), None)
    if twice is not None:
        raise ClassroomError(say("The answer “{answer}” is there twice.", answer=twice[:60]))
    for answer in lines:
        _check_length(answer, LONGEST_ANSWER)


def read_guess(text: str) -> str:
    """Read what a pupil answers in words of its own, shortened; empty where it has no letter."""
    return one_line(text[: 4 * LONGEST_GUESS])[:LONGEST_GUESS].strip()


def one_line(text: str) -> str:
    """Remove line breaks and invisible characters."""
    spaced: Sequence[str] = "".join(
        letter if letter.isprintable() else " " for letter in text
    ).split()
    return " ".join(spaced)


def _check_length(text: str, most: int) -> None:
    if len(text) > most:
        raise ClassroomError(
            say(
                "“{text}…” has {count:,} letters; {limit} is the most here.",
                text=text[:30],
                count=len(text),
                limit=most,
            )
        )
