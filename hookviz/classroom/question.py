"""A question to the class: its words, two to six answers, and how many chose each."""

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
    """What a class is asked.

    Attributes:
        number: tells it from every other question of this process.
        words: what is asked.
        answers: to choose one of.
    """

    number: int
    words: str
    answers: tuple[str, ...]

    def is_like(self, other: "Question | None") -> bool:
        """Whether the same is asked."""
        return other is not None and (self.words, self.answers) == (other.words, other.answers)


def read_question(words: str, answers: Iterable[str]) -> Question:
    """The question in what a teacher typed; answers without a letter are left out.

    Raises:
        ClassroomError: nothing is asked, answers are too few, too many or alike, or it is too long.
    """
    asked = _one_line(words)
    given = tuple(filter(None, map(_one_line, answers)))
    if not asked:
        raise ClassroomError(say("The question has no words yet."))
    if not FEWEST <= len(given) <= MOST:
        raise ClassroomError(
            say(
                "A question needs {minimum} to {maximum} answers, one a line; this one has "
                "{count}.",
                minimum=FEWEST,
                maximum=MOST,
                count=len(given),
            )
        )
    twice = next((each for each in given if given.count(each) > 1), None)
    if twice is not None:
        raise ClassroomError(say("The answer “{answer}” is there twice.", answer=twice[:60]))
    _within(asked, LONGEST_QUESTION)
    for answer in given:
        _within(answer, LONGEST_ANSWER)
    return Question(next(_numbers), asked, given)


def tally(question: Question, votes: Iterable[int | None]) -> list[int]:
    """How many chose each answer."""
    chosen = list(votes)
    return [chosen.count(index) for index in range(len(question.answers))]


def _one_line(text: str) -> str:
    """The text without line breaks and signs that can't be seen."""
    spaced: Sequence[str] = "".join(
        letter if letter.isprintable() else " " for letter in text
    ).split()
    return " ".join(spaced)


def _within(text: str, most: int) -> None:
    if len(text) > most:
        raise ClassroomError(
            say(
                "“{text}…” has {count:,} letters; {limit} is the most here.",
                text=text[:30],
                count=len(text),
                limit=most,
            )
        )
