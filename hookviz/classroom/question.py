"""Read a question to the class, with two to six answers, and count who chose which."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from hookviz.errors import ClassroomError
from hookviz.language.saying import say

FEWEST, MOST = 2, 6
"""Answers of a question."""
LONGEST_QUESTION, LONGEST_ANSWER = 300, 120
"""Letters."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Question:
    """Question to a class.

    Attributes:
        number: tells it from every other question of this process.
        words: what is asked.
        answers: to choose one of.
    """

    number: int
    words: str
    answers: tuple[str, ...]

    def is_like(self, other: "Question | None") -> bool:
        """Return whether the same is asked."""
        return other is not None and (self.words, self.answers) == (other.words, other.answers)


def read_question(words: str, answers: Iterable[str]) -> Question:
    """Read the question that a teacher typed; answers without a letter are left out.

    Raises:
        ClassroomError: nothing is asked, answers are too few, too many or alike, or it is too long.
    """
    words = _one_line(words)
    lines = tuple(filter(None, map(_one_line, answers)))
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
    twice = next((answer for answer in lines if lines.count(answer) > 1), None)
    if twice is not None:
        raise ClassroomError(say("The answer “{answer}” is there twice.", answer=twice[:60]))
    _check_length(words, LONGEST_QUESTION)
    for answer in lines:
        _check_length(answer, LONGEST_ANSWER)
    return Question(next(_numbers), words, lines)


def tally(question: Question, votes: Iterable[int | None]) -> list[int]:
    """Count how many chose each answer."""
    listed = list(votes)
    return [listed.count(index) for index in range(len(question.answers))]


def _one_line(text: str) -> str:
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
