"""Keep trainings for all who watch them: whoever has a turn takes the next steps for everybody.

A training follows from its rate and its seed alone, and shows nobody's image. So forty who press
*Train* in one class share one training, and a page that is loaded again finds it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from hookviz.lessons.small_network import Drawings, Frame, Training
from hookviz.types import Progress

_MOST = 12  # trainings that are kept, about a megabyte each
_DRAWING = 0.15  # of a training's time: before the first of all, the drawings are made
_AT_ONCE = 0.5  # seconds that are computed before the page is drawn again


class SharedTraining:
    """Training that anybody can take further, one after the other.

    Attributes:
        rate: how far a step goes down the gradient.
        seed: of the first weights and of the order of the drawings.
    """

    def __init__(self, rate: float, seed: int, drawings: Drawings) -> None:
        self.rate, self.seed = rate, seed
        self._drawings = drawings
        self._training = Training(drawings, rate, seed)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The network at the beginning and as it was every few steps since."""
        return tuple(self._training.frames)

    @property
    def is_over(self) -> bool:
        """Whether all steps have been taken."""
        return self._training.is_over

    @property
    def share(self) -> float:
        """How far it is, 0…1."""
        if not self._training.frames:
            return _DRAWING * self._drawings.share
        return _DRAWING + (1 - _DRAWING) * self._training.share

    def go_on(self, progress: Progress) -> None:
        """Take it further for a moment, where `computing` says that nobody else does.

        Args:
            progress: called with the share done; what it raises ends this.
        """
        until = time.monotonic() + _AT_ONCE
        while time.monotonic() < until and not self.is_over:
            progress(self.share)
            if self._drawings.share < 1:
                self._drawings.go_on()
            else:
                self._training.go_on()


@contextmanager
def computing() -> Iterator[bool]:
    """Yield whether one may compute in the block; after a moment's wait not, as somebody else does.

    A training takes one core, and others who wait for one take no turn in the queue of runs.
    """
    mine = _computing.acquire(timeout=_AT_ONCE)
    try:
        yield mine
    finally:
        if mine:
            _computing.release()


_computing = threading.Lock()
_kept: OrderedDict[tuple[float, int], SharedTraining] = OrderedDict()
_keeping = threading.Lock()


@cache
def _drawings() -> Drawings:
    return Drawings()


def training(rate: float, seed: int) -> SharedTraining:
    """Return the training with that rate and seed, new or as far as anybody took it."""
    with _keeping:
        known = _kept.pop((rate, seed), None) or SharedTraining(rate, seed, _drawings())
        _kept[rate, seed] = known
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return known


def finished() -> tuple[SharedTraining, ...]:
    """Return the trainings that somebody took to their end, the newest last."""
    with _keeping:
        return tuple(each for each in _kept.values() if each.is_over)
