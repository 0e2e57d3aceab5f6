"""Score a hunt for the channel that is most alike to what is sought."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_KEPT = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,5}){0,99})?(!?)")
_MOST_TRIES = 100  # that are kept, the last ones
STARS = ((3, 3), (6, 2))
"""At most so many tries for so many stars; whoever needs more has one."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """What a learner has tried among the channels of a layer.

    Attributes:
        likeness: how alike each channel is to what is sought, 0…1.
        tries: the channels that were tried, each once, in their order.
        given_up: whether the answer was asked for.
    """

    likeness: tuple[float, ...]
    tries: tuple[int, ...] = ()
    given_up: bool = False

    @property
    def best(self) -> int:
        """The channel that is most alike."""
        return max(range(len(self.likeness)), key=self.likeness.__getitem__)

    @property
    def is_found(self) -> bool:
        """Whether that channel, or one that is as alike, was tried."""
        return any(self.likeness[each] >= self.likeness[self.best] for each in self.tries)

    @property
    def is_over(self) -> bool:
        """Whether the answer may be seen."""
        return self.is_found or self.given_up

    @property
    def closest_so_far(self) -> int | None:
        """The channel most alike of those that were tried; None before the first."""
        return max(self.tries, key=self.likeness.__getitem__, default=None)

    @property
    def stars(self) -> int:
        """Stars for having found it, by the number of tries; none for an answer asked for."""
        if self.given_up or not self.is_found:
            return 0
        return next((stars for most, stars in STARS if len(self.tries) <= most), 1)

    def closer_than(self, channel: int) -> int:
        """Return how many channels are more alike than that one."""
        return sum(each > self.likeness[channel] for each in self.likeness)

    def trying(self, channel: int) -> "Hunt":
        """Return the hunt with another try; a channel counts once, and none when it is over."""
        if self.is_over or channel in self.tries:
            return self
        return Hunt(self.likeness, (*self.tries, channel)[-_MOST_TRIES:])

    def giving_up(self) -> "Hunt":
        """Return the hunt with the answer asked for; one that has it already is as it was."""
        return self if self.is_over else Hunt(self.likeness, self.tries, given_up=True)


def written_hunt(hunt: Hunt) -> str:
    """Return the tries as text for a link; see `read_hunt`."""
    return ".".join(map(str, hunt.tries)) + ("!" if hunt.given_up else "")


def read_hunt(text: str, likeness: Sequence[float]) -> Hunt:
    """Return the hunt of `written_hunt`; a fresh one where the text is anything else."""
    found = _KEPT.fullmatch(text)
    tries = tuple(map(int, found[1].split("."))) if found and found[1] else ()
    if found is None or any(each >= len(likeness) for each in tries):
        return Hunt(tuple(likeness))
    return Hunt(tuple(likeness), tuple(dict.fromkeys(tries)), given_up=bool(found[2]))
