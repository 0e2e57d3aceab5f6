"""Compare two captures: pair their layers, and measure how the channels of each pair differ.

`compare_maps` and `rank_correlation` compare two activations of one shape. Where no layers can be
paired, the error says why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz import markup
from hookviz.drawing.dimensions import middle_maps, middle_slice
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, shorten
from hookviz.language.saying import joined, say
from hookviz.types import FIRST, Activation, Capture, Layout, MissingAddressError
from hookviz.wording import number, times

Floats = NDArray[np.float64]

_CHUNK = 1 << 16  # values at a time: their float64 copies stay in the processor's cache


@dataclass(frozen=True, eq=False, slots=True)
class ChannelComparison:
    """Similarity of each channel of A to the channel of B that has the same number.

    A channel with NaN in it has NaN for all three numbers. One with an infinite value has NaN for
    correlation and cosine; its difference is infinite, or NaN where both are infinite in one cell.

    Attributes:
        correlation: Pearson's, float64 ``(C,)``, from -1 to 1, over the cells of a map; NaN where
            either map has one value everywhere, since then there is nothing to vary together.
        mean_absolute_difference: float64 ``(C,)``, the mean of |b - a| over the cells, in the
            units of the activation.
        cosine: of the angle between the two maps as vectors, float64 ``(C,)``, from -1 to 1; NaN
            where either map is zero everywhere, since that has no direction.
        most_changed: every channel's number, int64 ``(C,)``, the largest mean absolute difference
            first; equal ones by channel number. Channels where it is NaN stand before all others.
    """

    correlation: Floats = field(repr=False)
    mean_absolute_difference: Floats = field(repr=False)
    cosine: Floats = field(repr=False)
    most_changed: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.correlation)

    @property
    def means(self) -> tuple[float, float, float]:
        """Correlation, mean absolute difference and cosine, each the mean over the channels.

        Channels whose number is NaN are left out; NaN where all are.
        """
        correlation, difference, cosine = (
            float(numbers[~np.isnan(numbers)].mean()) if not np.isnan(numbers).all() else np.nan
            for numbers in (self.correlation, self.mean_absolute_difference, self.cosine)
        )
        return correlation, difference, cosine


def compare_maps(a: Tensor, b: Tensor) -> ChannelComparison:
    """Compare two activations of one shape, channel by channel.

    Correlation is ``Σ(a-ā)(b-b̄) / √(Σ(a-ā)² Σ(b-b̄)²)`` and cosine ``Σab / √(Σa² Σb²)``, over the
    cells of a channel, computed in float64.

    Both are real numbers of one shape, ``(C, H, W)``, or any other ``(C, …)``: sound, a volume, a
    vector.

    Raises:
        HookVizError: the shapes differ, or there are no numbers in them, or complex ones.

    >>> from hookviz.comparing.captures import compare_maps
    >>> a = torch.arange(8.0).reshape(2, 2, 2)  # (C, H, W)
    >>> comparison = compare_maps(a, a * torch.tensor([2.0, -1.0])[:, None, None])
    >>> comparison.correlation.tolist(), comparison.most_changed.tolist()
    ([1.0, -1.0], [1, 0])
    """
    first, second = _rows(a, b)
    numbers = np.empty((3, len(first)))
    step = max(1, _CHUNK // first.shape[1])
    with np.errstate(all="ignore"):  # NaN and infinities come out as NaN
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            numbers[:, part] = _numbers(first[part], second[part])
    correlation, difference, cosine = numbers
    largest_first = np.where(np.isnan(difference), -np.inf, -difference)
    order = np.lexsort((~np.isnan(difference), largest_first)).astype(np.int64)
    for array in (correlation, difference, cosine, order):
        array.setflags(write=False)
    return ChannelComparison(correlation, difference, cosine, order)


def _rows(a: Tensor, b: Tensor) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return both as NumPy arrays with a row for each channel, ``(C, cells)``."""
    if a.shape != b.shape:
        raise HookVizError(
            say(
                "Maps of {size_a} can't be compared with maps of {size_b} channel by channel: "
                "both have to have the same shape.",
                size_a=_size(a),
                size_b=_size(b),
            )
        )
    if not a.ndim or not a.numel():
        raise HookVizError(
            say("There are no channels to compare in a tensor of {size}.", size=_size(a))
        )
    if a.is_complex() or b.is_complex():
        raise HookVizError(say("Complex numbers are not compared; give their .abs() or .real."))
    first, second = (_real(maps).reshape(len(maps), -1).numpy() for maps in (a, b))
    return first, second


def _real(values: Tensor) -> Tensor:
    plain = values.detach().cpu()
    return plain if plain.element_size() > 2 and plain.is_floating_point() else plain.double()


def _numbers(first: NDArray[np.generic], second: NDArray[np.generic]) -> Floats:
    """Return correlation, mean absolute difference and cosine of a few channels, ``(3, C)``."""
    x, y = first.astype(np.float64), second.astype(np.float64)
    cosine = _cosine(x, y)
    difference = np.abs(y - x).mean(1)
    # by their values: the mean of equal numbers can be off by a rounding, and look like variation
    constant = (x.min(1) == x.max(1)) | (y.min(1) == y.max(1))
    correlation = _cosine(x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True))
    return np.stack([np.where(constant, np.nan, correlation), difference, cosine])


def _cosine(x: Floats, y: Floats) -> Floats:
    products = (np.einsum("ij,ij->i", *pair) for pair in ((x, y), (x, x), (y, y)))
    both, of_x, of_y = products
    cosine: Floats = np.clip(both / np.sqrt(of_x * of_y), -1, 1)
    return cosine


def _size(values: Tensor) -> str:
    return times(values.shape) or say("one number")


def rank_correlation(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float:
    """Return Spearman's rank correlation of two arrays of one shape, −1…1.

    Pearson's correlation of the ranks, where equal values share the mean of their ranks (Spearman,
    "The Proof and Measurement of Association between Two Things", 1904). NaN where either has one
    value everywhere, or any NaN.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 8.0, 9.0]))
    1.0
    """
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    first, second = (_ranks(values) for values in (a, b))
    first -= first.mean()
    second -= second.mean()
    size = np.sqrt(np.square(first).sum() * np.square(second).sum())
    return float(np.clip((first * second).sum() / size, -1, 1)) if size else float("nan")


def _ranks(values: NDArray[np.floating[Any]]) -> Floats:
    """Return the rank of each value, from 1; the mean rank for equal ones."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[index.ravel()]
    return ranks


_MOST_ROWS = 30  # that are not folded away
_HEAD = (
    *("layer", "shape", "correlation", "mean absolute difference", "cosine"),
    "most changed channel",
)

_Pair = tuple[Activation, Activation]

_SUGGESTED = 3  # pairs that an error names


@dataclass(frozen=True, eq=False)
class LayerComparison:
    """One activation of A beside the activation of B that it is compared with, of the same shape.

    Attributes:
        a: A's activation.
        b: B's.
        channels: how alike they are, channel by channel.
    """

    a: Activation
    b: Activation
    channels: ChannelComparison = field(repr=False)

    @property
    def name(self) -> str:
        """Written address in A, with the one in B where that is another."""
        first, second = str(self.a.address), str(self.b.address)
        return first if first == second else f"{first} and {second}"

    @property
    def difference(self) -> Activation:
        """B - A, float32, ``(C, H, W)``, under A's address: above zero where B is larger."""
        layout = self.a.layout if self.a.channels_last else Layout(FIRST)
        return Activation(self.a.address, self.b.values - self.a.values, layout)

    def grid(
        self, *, top: int | None = None, colormap: str | None = None, depth: int | None = None
    ) -> Grid:
        """Draw the difference, B - A, on a colour scale that is symmetric about zero.

        Args:
            top: number of most changed channels to draw, the most changed first; by default all
                channels in the layer's own order.
            colormap: as `make_grid` has it.
            depth: which slice of a volume; the middle one by default.

        Raises:
            HookVizError: the layer puts out no maps.
            SettingError: an option has a value that means nothing.
        """
        if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
            raise SettingError(f"top={shorten(repr(top))} is not a whole number above 0.")
        difference = self.difference
        middle = middle_slice(tuple(difference.values.shape))
        grid = make_grid(
            difference,
            scale="symmetric",
            colormap=colormap,
            depth=middle if depth is None else depth,
            title=f"{self.name}: B − A",
        )
        if top is None:
            return grid
        values = difference.values if depth is None else difference.values[:, depth]
        maps = middle_maps(values).numpy()
        return with_channels(grid, maps, self.channels.most_changed[:top].tolist())

    @property
    def _row(self) -> tuple[str, ...]:
        means = self.channels.means
        changed = int(self.channels.most_changed[0])
        difference = float(self.channels.mean_absolute_difference[changed])
        return (
            self.name,
            times(self.a.values.shape),
            *(number(mean) for mean in means),
            f"{changed} (by {number(difference)})",
        )


@dataclass(frozen=True, eq=False)
class Comparison(Mapping[str, LayerComparison]):
    """The compared layers of two captures: a mapping by A's written address, in order of execution.

    Attributes:
        a: the one that is compared with.
        b: the one that is compared; a difference is B - A.
        layers: what was compared.
        left_out: why an activation of A was not compared, by its written address.
    """

    a: Capture = field(repr=False)
    b: Capture = field(repr=False)
    layers: tuple[LayerComparison, ...]
    left_out: Mapping[str, str]

    @cached_property
    def _by_address(self) -> dict[str, LayerComparison]:
        return {str(layer.a.address): layer for layer in self.layers}

    def __getitem__(self, address: str) -> LayerComparison:
        """Return the comparison of the activation at a written address of A.

        Raises:
            UnknownLayerError: nothing is; also a `KeyError`, as of any mapping.
        """
        try:
            return self._by_address[address]
        except KeyError:
            raise MissingAddressError("compared layer", address, self._by_address) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_address)

    def __len__(self) -> int:
        return len(self._by_address)

    def grid(
        self,
        layer: str | None = None,
        *,
        top: int | None = None,
        colormap: str | None = None,
        depth: int | None = None,
    ) -> Grid:
        """Draw the difference of a layer (of the first by default) as `LayerComparison.grid` does.

        Raises:
            UnknownLayerError: that layer was not compared.
            HookVizError: it puts out no maps.
            SettingError: an option has a value that means nothing.

        >>> model = hookviz.load_model("shapesnet")
        >>> files = ("assets/samples/star.jpg", "assets/samples/cat.jpg")
        >>> a, b = (hookviz.capture(model, file) for file in files)
        >>> grid = hookviz.compare(a, b).grid("stage1.first.conv", top=4)
        >>> grid.title, grid.shown
        ('stage1.first.conv: B − A', '4 of 48 shown')
        """
        chosen = self.layers[0] if layer is None else self[layer]
        return chosen.grid(top=top, colormap=colormap, depth=depth)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: both captures, and the numbers of each layer."""
        about = " and ".join(
            f"{name}: {capture.model}, {capture.weights} weights, "
            f"input {times(capture.input.shape[1:])}"
            for name, capture in (("A", self.a), ("B", self.b))
        )
        html = markup.element("p", f"{about}. Numbers are means over the channels.")
        rows = [layer._row for layer in self.layers]
        compared, is_open = markup.table(_HEAD, rows), len(rows) <= _MOST_ROWS
        html += markup.details(f"{len(rows):,} compared", compared, is_open=is_open)
        if self.left_out:
            left = markup.table(("layer", "not compared"), [*self.left_out.items()])
            html += markup.details(f"{len(self.left_out):,} not compared", left, is_open=False)
        return html


def compare(
    a: Capture, b: Capture, layer: str | None = None, other_layer: str | None = None
) -> Comparison:
    """Compare two captures, layer by layer: how alike their channels are and how they differ.

    By default every activation is compared that both have under one address (layer, call and part
    of the output) and in one shape. The channels are the first dimension, or the last one where an
    activation says so. A difference is B - A.

    Args:
        a: what to compare with, from `capture`.
        b: what is compared.
        layer: a written address in A, such as ``"relu#1"``; or a layer's name, which stands for
            all parts of its outputs where none is written so. All of them by default.
        other_layer: the same in B; `layer` by default.

    Raises:
        UnknownLayerError: nothing is recorded there.
        HookVizError: nothing of it has the same shape in both; the message says which shapes there
            are, and what can be compared.

    >>> model = hookviz.load_model("shapesnet")
    >>> files = ("assets/samples/star.jpg", "assets/samples/cat.jpg")
    >>> a, b = (hookviz.capture(model, file) for file in files)
    >>> comparison = hookviz.compare(a, b)
    >>> len(comparison), comparison["stem.first.conv"].channels.most_changed[:3]
    (10, array([26, 19, 21]))
    >>> comparison["stem.first.conv"].difference.values.shape  # of B - A, (C, H, W)
    torch.Size([32, 64, 64])
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Capture):
            raise HookVizError(
                f"{name}={shorten(repr(value))} is no capture; compare takes two of what "
                "hookviz.capture gives."
            )
    pairs, left_out = pairs_of(a, b, layer, other_layer)
    layers = tuple(
        LayerComparison(first, second, compare_maps(*map(_channels_first, (first, second))))
        for first, second in pairs
    )
    return Comparison(a, b, layers, left_out)


def _channels_first(activation: Activation) -> Tensor:
    values = activation.values
    return values.movedim(-1, 0) if activation.channels_last and values.ndim > 1 else values


def pairs_of(
    a: Capture, b: Capture, layer: str | None = None, other_layer: str | None = None
) -> tuple[tuple[_Pair, ...], dict[str, str]]:
    """Return the pairs of activations in A's order, and why the rest of A is left out.

    `layer` is a written address, or a layer's name; None for all that both have. `other_layer` is
    the same in B; `layer` by default.

    Raises:
        UnknownLayerError: nothing is recorded there.
        HookVizError: no pair has one shape; the message says what can be compared.
    """
    wanted = _activations(a, layer if layer is not None else other_layer)
    others = _activations(b, other_layer if other_layer is not None else layer)
    is_pair = layer is not None and other_layer is not None
    beside: Mapping[Any, Activation]
    if is_pair and len(wanted) == len(others) == 1:  # whichever call and part they are of
        beside = {_key(wanted[0], by_name=True): others[0]}
    else:
        beside = {_key(activation, by_name=is_pair): activation for activation in others}
    pairs: list[_Pair] = []
    left_out: dict[str, str] = {}
    for activation in wanted:
        other = beside.get(_key(activation, by_name=is_pair))
        reason = _reason(activation, other)
        if reason or other is None:
            left_out[str(activation.address)] = reason
        else:
            pairs.append((activation, other))
    if not pairs:
        asked = [*product(wanted, b.activations), *product(a.activations, others)]
        raise HookVizError(_no_pairs(a, b, left_out, asked))
    return tuple(pairs), left_out


def _activations(capture: Capture, layer: str | None) -> tuple[Activation, ...]:
    """Return all of a capture, the activation at a written address, or all parts of a layer."""
    if layer is None:
        return capture.activations
    if layer in capture:
        return (capture[layer],)
    parts = capture.calls(layer)
    if not parts:
        raise UnknownLayerError(
            say("captured layer of {model}", model=capture.model), layer, capture
        )
    return parts


def _key(activation: Activation, *, by_name: bool) -> tuple[Any, ...]:
    """Return the key that pairs have in common: the address, without a layer if both are named."""
    address = activation.address
    return ("" if by_name else address.layer), address.call, address.path


def _reason(activation: Activation, other: Activation | None) -> str:
    """Return why two activations can't be compared; empty where they can."""
    if other is None:
        return say("B has nothing under that address")
    values, other_values = activation.values, other.values
    if values.shape != other_values.shape:
        same = activation.address == other.address
        return say(
            "A has {size_a} and B {size_b}{place}",
            size_a=_size(values),
            size_b=_size(other_values),
            place="" if same else say(" in {address}", address=other.address),
        )
    if not values.ndim or not values.numel():
        return say("it has no channels")
    if values.is_complex() or other_values.is_complex():
        return say("it holds complex numbers")
    return ""


def _no_pairs(a: Capture, b: Capture, left_out: Mapping[str, str], asked: Iterable[_Pair]) -> str:
    """Return why nothing is compared, and suggest pairs: the `asked` ones first."""
    shown = [f"{name}: {reason}" for name, reason in [*left_out.items()][:_SUGGESTED]]
    more = (
        say("; and {count:,} more", count=len(left_out) - _SUGGESTED)
        if len(left_out) > _SUGGESTED
        else ""
    )
    message = say(
        "No layer of {model_a} and {model_b} can be compared here. {reasons}{rest}.",
        model_a=a.model,
        model_b=b.model,
        reasons="; ".join(shown),
        rest=more,
    )
    suggested = _suggested(asked) or _suggested(product(a.activations, b.activations))
    if suggested:
        named = joined(
            say(
                "A's {address_a} and B's {address_b}",
                address_a=first.address,
                address_b=second.address,
            )
            for first, second in suggested
        )
        return say(
            "{problem} Of one shape are {pairs}, to be named as layer= and other_layer=.",
            problem=message,
            pairs=named,
        )
    shapes = tuple(times(capture.input.shape[1:]) for capture in (a, b))
    size = ""
    if shapes[0] != shapes[1]:
        size = say(
            " The inputs are {shape_a} and {shape_b}: capture both in one size.",
            shape_a=shapes[0],
            shape_b=shapes[1],
        )
    return say(
        "{problem}{sizes} hookviz.similarity compares layers of any shape, over many images.",
        problem=message,
        sizes=size,
    )


def _suggested(pairs: Iterable[_Pair]) -> list[_Pair]:
    """Return a few of the pairs that can be compared, those with one address in both first."""
    comparable = [pair for pair in pairs if not _reason(*pair)]
    comparable.sort(key=lambda pair: pair[0].address != pair[1].address)
    return comparable[:_SUGGESTED]
