"""Render the channels that a view shows: by themselves, or as B beside those pinned as A.

`look_of` decides the order, the number, the scale and the colours. A stream's held scale is written
into a view here, and drawn on again where the same layer is shown.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.capturing.cache import ByteCache
from hookviz.comparing.captures import ChannelComparison, compare_maps
from hookviz.drawing.dimensions import middle_maps, middle_slice
from hookviz.drawing.grid import Grid, ScaleLock, draw_on_scale, scale_of
from hookviz.drawing.pair import Pair, draw_pair, why_unlike
from hookviz.drawing.scales import Limits
from hookviz.drawing.statistics import SORTS
from hookviz.errors import HookVizError
from hookviz.explorer.encoding import MOST_VALUES, float32_text
from hookviz.explorer.glossary import emphasised
from hookviz.explorer.layers import ResolvedView, captured, maps, resolve
from hookviz.explorer.question import Answer, NotThereError, Report
from hookviz.explorer.subject import Colours, Pinned, Subject
from hookviz.explorer.view import (
    ALL,
    AUTOMATIC,
    CHANGE,
    DIFFERENCE,
    SPLIT,
    HeldScale,
    View,
    choices,
)
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.markup import data_url
from hookviz.types import Activation, Capture
from hookviz.wording import number


@dataclass(frozen=True, slots=True)
class Look:
    """How channels are drawn: the arguments of `make_grid`, by the same names.

    Attributes:
        sort: one of `SORTS`, or `CHANGE`.
        top: how many channels are shown; None for all.
        scale: one of `SCALES`.
        colormap: of a layer that is nowhere below zero.
        signed_colormap: of one that has values below zero.
        of_difference: of what is below zero in a pair, and of its difference.
    """

    sort: str
    top: int | None
    scale: str
    colormap: str
    signed_colormap: str
    of_difference: str

    def draw(
        self, activation: Activation, held: ScaleLock | None, depth: int | None = None
    ) -> Grid:
        """Draw an activation.

        Args:
            activation: of one layer.
            held: a scale to draw on; None for the activation's own.
            depth: slice of a volume; the middle one by default.
        """
        return draw_on_scale(
            activation,
            sort=self.sort,
            top=self.top,
            scale=self.scale,
            colormap=self.colormap,
            signed_colormap=self.signed_colormap,
            held=held,
            depth=depth,
        )


def look_of(view: View, colours: Colours, channels: int) -> Look:
    """Return how a view draws a layer, with every automatic choice decided.

    One language of colours everywhere: blue below zero, red above, zero neutral, be the page dark
    or light. A layer that is nowhere negative runs from the page's own black or white at 0.

    Args:
        view: what is chosen.
        colours: of the page.
        channels: how many the layer has; a view of as many or more shows all.
    """
    chosen = None if view.colours == AUTOMATIC else view.colours
    return Look(
        sort=view.sort,
        top=view.top if view.top is not None and view.top < channels else None,
        scale="balanced" if view.scale == AUTOMATIC else view.scale,
        colormap=chosen or colours.sequential,
        signed_colormap=chosen or colours.diverging,
        of_difference=colours.diverging,
    )


def tops(channels: int) -> tuple[str, ...]:
    """Return the choices for the number of channels shown, as a link writes them: all first.

    >>> tops(64)
    ('all', '16')
    """
    counts = choices()["top"].values or ()
    return tuple(count for count in counts if count == ALL or int(count) < channels)


def sorts(*, alike: bool) -> tuple[str, ...]:
    """Return the orders of channels; a pair of one shape can be sorted by its changes too."""
    return (*SORTS, CHANGE) if alike else tuple(SORTS)


SHOWN = ("A", "B", SPLIT, DIFFERENCE)
"""Choices for a pair of one shape; a pair of two shapes has the first two."""


@dataclass(frozen=True, eq=False, slots=True)
class PinnedPair:
    """The maps ``(C, H, W)`` of A, which is pinned, and of B, which the view shows.

    Attributes:
        pinned: A.
        a, b: the maps.
        key: tells this pair of maps from others.
        cache: keeps their drawings and their comparison.
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
        """Choices for the pair, as a link writes them."""
        return SHOWN if self.alike else SHOWN[:2]

    @property
    def channels(self) -> ChannelComparison:
        """Comparison of each channel of B with A's; of a pair of one shape."""
        key = ("compared", self.key)
        channels: ChannelComparison | None = self.cache.get(key)
        if channels is None:
            channels = compare_maps(torch.from_numpy(self.a), torch.from_numpy(self.b))
            self.cache.put(key, channels, 4 * channels.correlation.nbytes)
        return channels

    def shown(self, view: View) -> str:
        """Return the one of `choices` that a view shows; B where it asks for another."""
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
    """Return the pinned maps beside those that are shown; None where nothing is pinned.

    Args:
        subject: whose maps are B.
        step: whose output B is, an `ActivationKey` as text.
        maps: of B, ``(C, H, W)``.
        frame: number of the frame of video; A's is the same one, where it has that.

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


def differences_from_a(subject: Subject, step: str) -> list[str]:
    """Return B's image, network and step, without those that A has too."""
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
    """Return the comparison of A and B as a whole, and the channels that changed most.

    Before there is a B, a sentence says what to do next.

    Raises:
        NotThereError: nothing is pinned as A, or A has another shape.
        HookVizError: A can't be had, or the pass can't be run.
    """
    resolved = resolve(subject, view)
    pair = pinned_pair(subject, str(resolved.step), maps(subject, resolved), resolved.frame)
    if pair is None:
        raise NotThereError(
            say("Nothing is pinned as A: pin what is on the screen with Compare first.")
        )
    if not pair.alike:
        raise NotThereError(why_unlike(pair.a.shape, pair.b.shape))
    if not differences_from_a(subject, str(resolved.step)) and np.array_equal(pair.a, pair.b):
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


def scale_in_view(held: ScaleLock | None) -> HeldScale | None:
    """Return a held scale as a view has it; None where each channel has one of its own."""
    limits = None if held is None else held.limits
    if held is None or limits is None:
        return None
    low, high = float(limits.low[0]), float(limits.high[0])
    if (limits.low != low).any() or (limits.high != high).any():
        return None
    return HeldScale(_digest(held.of), low, high, held.signed)


def scale_of_view(
    chosen: HeldScale | None, of: tuple[object, ...], scale: str, channels: int
) -> ScaleLock | None:
    """Return the scale that a view holds; None where it holds none, or one of another drawing.

    Args:
        chosen: what the view says.
        of: key of the drawing, by `hookviz.drawing.grid.scale_of`.
        scale: one of `SCALES`, which the held one is of.
        channels: number of channels.
    """
    if chosen is None or chosen.of != _digest(of):
        return None
    low, high = np.full(channels, chosen.low), np.full(channels, chosen.high)
    return ScaleLock(of, Limits(scale, low, high), chosen.is_signed)


def _digest(of: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(of).encode(), digest_size=4).hexdigest()


class RenderedPair(NamedTuple):
    """Maps of A and B, and both as drawn.

    Attributes:
        maps: of both.
        pair: both as drawn.
        shown: ``"A"``, ``"B"``, ``"Split"`` or ``"Difference"``.
    """

    maps: PinnedPair
    pair: Pair
    shown: str


@dataclass(frozen=True, eq=False, slots=True)
class RenderedGrid:
    """A view of a subject, rendered.

    Attributes:
        resolved: the layer.
        capture: the pass that recorded it.
        activation: its output, as recorded.
        maps: the maps shown, ``(C, H, W)``.
        look: how they are drawn.
        own: the layer's channels as drawn by themselves.
        compared: they as B beside the pinned A; None without A, or where A can't be had.
        warning: why A can't be had; empty where it can.
        began: when the pass was over and drawing began, of `time.perf_counter`.
    """

    resolved: ResolvedView
    capture: Capture
    activation: Activation
    maps: torch.Tensor
    look: Look
    own: Grid
    compared: RenderedPair | None
    warning: str
    began: float

    @property
    def is_of_a(self) -> bool:
        """Whether A alone is shown, as a pair of two shapes shows it."""
        return (
            self.compared is not None
            and not self.compared.pair.alike
            and self.compared.shown == "A"
        )

    @property
    def grid(self) -> Grid:
        """Grid in whose colours one channel is shown: B's where there is a pair, else its own."""
        return self.own if self.compared is None else self.compared.pair.b


def render(subject: Subject, view: View) -> RenderedGrid:
    """Render a view, or take its parts from the cache.

    Raises:
        HookVizError: the network shows no channels, or the pass can't be run.
    """
    resolved = resolve(subject, view)
    capture = captured(subject, resolved)
    began = time.perf_counter()
    activation = capture[str(resolved.step)]
    maps = middle_maps(activation.values, resolved.frame)
    look = look_of(view, subject.colours, maps.shape[0])
    own = draw_grid(subject, activation, look, view.held, resolved.frame)
    compared, warning = None, ""
    try:
        both = pinned_pair(subject, str(resolved.step), maps, resolved.frame)
    except HookVizError as error:
        both, warning = None, str(error)
    if both is not None:
        compared = RenderedPair(both, both.draw(look, own.title), both.shown(view))
    return RenderedGrid(resolved, capture, activation, maps, look, own, compared, warning, began)


def draw_grid(
    subject: Subject,
    activation: Activation,
    look: Look,
    chosen: HeldScale | None,
    frame: int | None = None,
) -> Grid:
    """Draw an activation, or take it from the cache.

    An order that it lacks by itself, such as by change, is the layer's own. `chosen` is a scale to
    draw on, where it is of the same layer, `frame` which slice of a volume is drawn.
    """
    depth = middle_slice(tuple(activation.values.shape), frame)
    look = look if look.sort in SORTS else replace(look, sort="index")
    of = scale_of(subject.model, activation, look.scale)
    held = scale_of_view(chosen, of, look.scale, middle_maps(activation.values).shape[0])
    grid: Grid = subject.cached(
        "grid",
        str(activation.address),
        look,
        depth,
        None if held is None else chosen,
        current(),  # in which its words are said
        compute=lambda: look.draw(activation, held, depth),
        size=lambda drawn: drawn.levels.nbytes + len(drawn.sprite),
    )
    return grid
