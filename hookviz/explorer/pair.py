"""Hold what is pinned as A against what is looked at, B: their maps, drawn and in numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.capturing.cache import ByteCache
from hookviz.comparing.channels import ChannelComparison, compare_maps
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.pair import Pair, draw_pair
from hookviz.drawing.statistics import SORTS
from hookviz.explorer.channel_map import MOST_VALUES
from hookviz.explorer.encoding import float32_text
from hookviz.explorer.look import Look
from hookviz.explorer.subject import Pinned, Subject
from hookviz.explorer.view import CHANGE, DIFFERENCE, SPLIT, View
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.markup import data_url
from hookviz.wording import number

SHOWN = ("A", "B", SPLIT, DIFFERENCE)
"""What can be shown of two of one shape; of two others only the first two."""


@dataclass(frozen=True, eq=False, slots=True)
class PinnedPair:
    """The maps ``(C, H, W)`` of A, which is pinned, and of B, which is looked at.

    Attributes:
        pinned: A.
        a, b: the maps.
        key: tells this pair of maps from others.
        cache: keeps what is drawn and counted of them.
    """

    pinned: Pinned
    a: NDArray[np.float32]
    b: NDArray[np.float32]
    key: tuple[str, ...]
    cache: ByteCache

    @property
    def alike(self) -> bool:
        """Whether both are of one shape, so that cell stands against cell."""
        return self.a.shape == self.b.shape

    @property
    def choices(self) -> tuple[str, ...]:
        """What can be shown of the two, as a link has it."""
        return SHOWN if self.alike else SHOWN[:2]

    @property
    def channels(self) -> ChannelComparison:
        """What each channel of B has in common with A's; of two of one shape."""
        key = ("compared", self.key)
        channels: ChannelComparison | None = self.cache.get(key)
        if channels is None:
            channels = compare_maps(torch.from_numpy(self.a), torch.from_numpy(self.b))
            self.cache.put(key, channels, 4 * channels.correlation.nbytes)
        return channels

    def shown(self, view: View) -> str:
        """Return what a view shows of the two: one of `choices`, B where it asks for another."""
        return view.compared if view.compared in self.choices else "B"

    def draw(self, look: Look, title: str) -> Pair:
        """Draw both in the colours of one scale, or take them from the cache.

        Args:
            look: how; the one of the view, of which the order can be `CHANGE`.
            title: what B's grid is called.
        """
        key = ("pair", self.key, title, look, current())  # of which the words are said, too
        pair: Pair | None = self.cache.get(key)
        if pair is None:
            changed = look.sort == CHANGE and self.alike
            pair = draw_pair(
                self.a,
                self.b,
                titles=(self.pinned.step, title),
                sort=look.sort if look.sort in SORTS else "index",
                channels=self.channels.most_changed.tolist() if changed else None,
                top=look.top,
                scale=look.scale,
                colormap=look.colormap,
                signed_colormap=look.of_difference,
            )
            levels = pair.a.levels.nbytes + pair.b.levels.nbytes
            # with the maps, of which a difference is drawn when it is asked for, and the sprites
            self.cache.put(key, pair, self.a.nbytes + self.b.nbytes + 3 * levels)
        return pair


def pinned_pair(
    subject: Subject, step: str, maps: torch.Tensor, frame: int | None = None
) -> PinnedPair | None:
    """Return what is pinned beside what is looked at; None where nothing is pinned.

    Args:
        subject: what is looked at.
        step: whose output that is, an `ActivationKey` as text.
        maps: of B, ``(C, H, W)``.
        frame: which frame of video they are; A's is the same one, where it has that.

    Raises:
        HookVizError: A can't be had any more.
    """
    pinned = subject.pinned
    if pinned is None:
        return None
    key = ("pinned", pinned.link, pinned.digest, frame)
    a: torch.Tensor | None = subject.cache.get(key)
    if a is None:
        if frame is None or pinned.run is None:
            a = pinned.read()
        else:
            a = middle_maps(pinned.run()[pinned.step].values, frame)
        subject.cache.put(key, a, a.nbytes)
    pair = (pinned.link, pinned.digest, *subject.key, step, str(frame))
    return PinnedPair(pinned, a.numpy(), maps.numpy(), pair, subject.cache)


def of_b_alone(subject: Subject, step: str) -> list[str]:
    """Return of image, network and step what B has that A has not; nothing where A is looked at."""
    pinned = subject.pinned
    if pinned is None:
        return []
    of_a = (pinned.image, pinned.title, pinned.step)
    of_b = (subject.image_title, subject.model_title, step)
    return [ours for theirs, ours in zip(of_a, of_b, strict=True) if theirs != ours]


def pair_facts(compared: PinnedPair, pair: Pair, channel: int) -> dict[str, Any]:
    """Describe a channel in A beside that in B, both of one shape.

    The values of A, ``(H, W)``, are left out where a map is so large that those of B are, too.
    """
    common, values = compared.channels, compared.a[channel]
    return {
        "meanDifference": number(float(common.mean_absolute_difference[channel])),
        "correlation": number(float(common.correlation[channel])),
        "cosine": number(float(common.cosine[channel])),
        "labels": {
            "aHere": "A here",
            "bHere": "B here",
            "meanDifference": say("mean |B − A|"),
            "correlation": "correlation",
            "cosine": "cosine",
        },
        "a": {
            "rows": values.shape[0],
            "columns": values.shape[1],
            "values": float32_text(values) if values.size <= MOST_VALUES else None,
            "bar": data_url(pair.a.bar()),
            "ticks": [[fraction, label] for fraction, label in pair.a.ticks_of(channel)],
        },
    }
