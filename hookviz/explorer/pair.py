"""Compare A, which is pinned, with B, which is looked at: their maps and most changed channels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.capturing.cache import ByteCache
from hookviz.comparing.captures import ChannelComparison, compare_maps
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.pair import Pair, draw_pair, why_unlike
from hookviz.drawing.statistics import SORTS
from hookviz.explorer.encoding import MOST_VALUES, float32_text
from hookviz.explorer.glossary import emphasised
from hookviz.explorer.layers import maps, resolve
from hookviz.explorer.look import Look
from hookviz.explorer.question import Answer, NotThereError, Report
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
            order: str | list[int] = look.sort if look.sort in SORTS else "index"
            if look.sort == CHANGE and self.alike:
                order = self.channels.most_changed.tolist()
            pair = draw_pair(
                self.a,
                self.b,
                titles=(self.pinned.step, title),
                order=order,
                top=look.top,
                scale=look.scale,
                colormaps=(look.colormap, look.of_difference),
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


_MOST = 8  # channels in the list of those that changed most


def answer_changes(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return what A and B have in common as a whole, and the channels that changed most.

    Before there is a B, that is what to do next.

    Raises:
        NotThereError: nothing is pinned as A, or A has another shape.
        HookVizError: A can't be had, or the pass can't be run.
    """
    looked = resolve(subject, view)
    pair = pinned_pair(subject, str(looked.step), maps(subject, looked), looked.frame)
    if pair is None:
        raise NotThereError(
            say("Nothing is pinned as A: pin what is on the screen with Compare first.")
        )
    if not pair.alike:
        raise NotThereError(why_unlike(pair.a.shape, pair.b.shape))
    if not of_b_alone(subject, str(looked.step)) and np.array_equal(pair.a, pair.b):
        says = say(
            "**There is no B yet.** Choose another image or model at the side, or another layer: "
            "then the channels that changed most stand here."
        )
        return Answer({"says": emphasised(says), "heads": [], "rows": [], "caption": ""})
    common = pair.channels
    known = common.correlation[np.isfinite(common.correlation)]
    says = say("**Click a tile** for its map in A and in B. Hold **F** to flip between the two. ")
    if known.size:
        mean = say("the channels' correlation is {mean} on average", mean=number(known.mean()))
        says += say("Cell against cell {correlation}.", correlation=mean)
    numbers = common.mean_absolute_difference, common.correlation, common.cosine
    return Answer(
        {
            "says": emphasised(says.rstrip()),
            "heads": ["channel", say("mean |B − A|"), "correlation", "cosine"],
            "rows": [
                [channel, *(number(float(each[channel])) for each in numbers)]
                for channel in common.most_changed[:_MOST].tolist()
            ],
            "caption": say(
                "The channels that changed most; sort: change brings them to the front."
            ),
        }
    )
