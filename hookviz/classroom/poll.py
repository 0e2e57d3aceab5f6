"""Count the answers to one question: while it is open, when it is closed, and who was right."""

from collections import Counter
from typing import Any, Literal

from hookviz.classroom.question import Question, read_guess

Phase = Literal["open", "closed", "revealed"]
"""Votes are taken; they are not any more; and the right answer is on all screens."""

_MOST_TEXTS = 60  # different answers in words of one's own that a teacher is shown


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
        if self.phase == "closed" and _alike(text) in map(_alike, self._texts()):
            self._right_texts ^= {_alike(text)}

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
            return _alike(vote) in self._right_texts
        return vote == self.question.right

    def _texts(self) -> list[str]:
        return [vote for vote in self._votes.values() if isinstance(vote, str)]

    def _listed(self) -> list[tuple[str, int]]:
        """Return answers in own words with how many gave them, whatever their case; most first."""
        written: dict[str, str] = {}
        for text in self._texts():
            written.setdefault(_alike(text), text)
        counts = Counter(map(_alike, self._texts()))
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
                    if _alike(text) in self._right_texts
                ]
        return view

    def view_of_teacher(self) -> dict[str, Any]:
        """Return what the teacher sees: how the votes come in, and all that was written."""
        view = self.view() | {"answered": len(self._votes), "hidden": self.question.is_hidden}
        if self.question.answers:
            view["tally"] = self._tally()
        elif self.phase == "closed":  # later her screen too shows the right ones alone
            view["texts"] = [
                [text, count, _alike(text) in self._right_texts] for text, count in self._listed()
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


def _alike(text: str) -> str:
    return read_guess(text).casefold()
