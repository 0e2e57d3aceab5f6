"""Compare two captures: pair the layers that can be compared and measure how they differ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from hookviz import markup
from hookviz.comparing.channels import ChannelComparison, compare_maps
from hookviz.comparing.pairs import pairs_of
from hookviz.drawing.dimensions import middle_maps, middle_slice
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, shorten
from hookviz.types import FIRST, Activation, Capture, Layout
from hookviz.wording import number, times

_MOST_ROWS = 30  # that are not folded away
_HEAD = (
    *("layer", "shape", "correlation", "mean absolute difference", "cosine"),
    "most changed channel",
)


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
            raise _NotComparedError("compared layer", address, self._by_address) from None

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
        """Return HTML for a notebook: what is compared, and the numbers of each layer."""
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


class _NotComparedError(UnknownLayerError, KeyError):
    """An `UnknownLayerError` that is a `KeyError` too, as a mapping has to raise."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted representation
