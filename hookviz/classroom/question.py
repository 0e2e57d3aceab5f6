"""Ask a class a question, and count the answers.

A question has two to six answers to choose one of, or is answered in one's own words. A `Riddle` is
a channel to be guessed. A `Poll` counts the answers while it is open, and then says who was right.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from hookviz.errors import ClassroomError
from hookviz.language.saying import say

FEWEST, MOST = 2, 6
"""Answers of a question."""

LONGEST_QUESTION, LONGEST_ANSWER = 300, 120
"""Letters."""

LONGEST_GUESS = 40
"""Letters of an answer in a pupil's own words."""

_numbers = count(1)
Phase = Literal["open", "closed", "revealed"]
"""Votes are taken; they are not any more; and the right answer is on all screens."""

_MOST_TEXTS = 60  # different answers in words of one's own that a teacher is shown


@dataclass(frozen=True, slots=True)
class Riddle:
    """Channel to be guessed.

    Attributes:
        patches: pictures of what excites it most, as URLs that hold their bytes.
        names: to choose one of; none where the class answers in its own words.
        right: the position of the right name; None without names.
        where: the network's ``model``, the ``layer``, the ``channel``, and whether the map has two
            colours, since some of the layer is below zero (``signed``); their names then, those
            of values ``above`` and ``below`` zero.
        map: the channel's map on an image, as a URL that holds its bytes.
    """

    patches: tuple[str, ...] = field(repr=False)
    names: tuple[str, ...]
    right: int | None
    where: dict[str, str | int]
    map: str = field(repr=False)


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


class Poll:
    """One question with its votes; whoever holds it sees to it that one thread at a time does.

    Nobody's view has the right answer before it is revealed: not the teacher's either, whose
    screen is on the wall.
    """

    def __init__(self, question: Question) -> None:
        """Begin with an open question and no vote."""
        self.question = question
        self.phase: Phase = "open"
        self._votes: dict[str, int | str] = {}
        self._right_texts: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether votes are taken."""
        return self.phase == "open"

    def vote(self, who: str, answer: int | str) -> bool:
        """Take a vote, in place of the one before; returns whether it counts."""
        answers = self.question.answers
        if not self.is_open:
            return False
        if isinstance(answer, str):
            answer = read_guess(answer)
            if answers or not answer:
                return False
        elif not 0 <= answer < len(answers):
            return False
        self._votes[who] = answer
        return True

    def move(self, before: str, now: str) -> None:
        """Give the vote of a page to the same page, loaded again."""
        vote = self._votes.pop(before, None)
        if vote is not None:
            self._votes.setdefault(now, vote)

    def forget(self, *gone: str) -> None:
        """Drop the votes of who leaves while votes are taken; later they stand as counted."""
        for who in gone if self.is_open else ():
            self._votes.pop(who, None)

    def close(self) -> None:
        """Take no more votes; where nothing is left to reveal by hand, it is revealed too."""
        if self.is_open:
            by_hand = self.question.riddle is not None or not self.question.answers
            self.phase = "closed" if by_hand else "revealed"

    def mark(self, text: str) -> None:
        """Count an answer in a pupil's own words as right, or no longer, before it is revealed."""
        if self.phase == "closed" and _normalize(text) in map(_normalize, self._texts()):
            self._right_texts ^= {_normalize(text)}

    def reveal(self) -> dict[str, bool]:
        """Reveal a closed question; returns of each who answered whether it was right, once."""
        if self.phase != "closed":
            return {}
        self.phase = "revealed"
        if self.question.answers and self.question.right is None:
            return {}
        return {who: self._is_right(vote) for who, vote in self._votes.items()}

    def _is_right(self, vote: int | str) -> bool:
        if isinstance(vote, str):
            return _normalize(vote) in self._right_texts
        return vote == self.question.right

    def _texts(self) -> list[str]:
        return [vote for vote in self._votes.values() if isinstance(vote, str)]

    def _listed(self) -> list[tuple[str, int]]:
        """Return answers in own words with how many gave them, whatever their case; most first."""
        written: dict[str, str] = {}
        for text in self._texts():
            written.setdefault(_normalize(text), text)
        counts = Counter(map(_normalize, self._texts()))
        order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return [(written[alike], count) for alike, count in order[:_MOST_TEXTS]]

    def _tally(self) -> list[int]:
        votes = list(self._votes.values())
        return [votes.count(index) for index in range(len(self.question.answers))]

    def view(self) -> dict[str, Any]:
        """Return what may be seen from any seat."""
        question = self.question
        view: dict[str, Any] = {
            "number": question.number,
            "words": question.words,
            "answers": list(question.answers),
            "phase": self.phase,
            "game": question.riddle is not None,
        }
        if question.riddle is not None:
            view["layer"] = question.riddle.where.get("layer", "")
        if not self.is_open and question.answers:
            view["tally"] = self._tally()
        if self.phase == "revealed":
            view["right"] = question.right
            if question.riddle is not None:
                view["where"] = question.riddle.where
            if not question.answers:
                view["texts"] = [
                    [text, count, True]
                    for text, count in self._listed()
                    if _normalize(text) in self._right_texts
                ]
        return view

    def view_of_teacher(self) -> dict[str, Any]:
        """Return what the teacher sees: how the votes come in, and all that was written."""
        view = self.view() | {"answered": len(self._votes), "hidden": self.question.is_hidden}
        if self.question.answers:
            view["tally"] = self._tally()
        elif self.phase == "closed":  # later her screen too shows the right ones alone
            view["texts"] = [
                [text, count, _normalize(text) in self._right_texts]
                for text, count in self._listed()
            ]
        return view

    def view_of(self, who: str) -> dict[str, Any]:
        """Return what one who follows sees, with its own vote."""
        return self.view() | {"mine": self._votes.get(who)}

    def pictures(self) -> dict[str, Any] | None:
        """Return a riddle's pictures, apart from what changes with each vote; None without any."""
        riddle = self.question.riddle
        if riddle is None:
            return None
        shown = {"number": self.question.number, "patches": list(riddle.patches), "map": ""}
        return shown | ({"map": riddle.map} if self.phase == "revealed" else {})


def _normalize(text: str) -> str:
    return read_guess(text).casefold()
