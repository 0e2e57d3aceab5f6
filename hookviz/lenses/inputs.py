"""What goes into a layer beside what comes out of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.panels import GridPanel, Panel, TablePanel, TextPanel
from hookviz.drawing.scales import Limits, quantise
from hookviz.errors import HookVizError, SettingError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import Telling, forward_pass, private_replica
from hookviz.hooking.torch_functions import version
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, OneOf, WholeNumber
from hookviz.types import LayerInfo
from hookviz.wording import number, times

_MOST_GRIDS = 2  # drawn per side; further tensors are rows of the table alone
_HEAD = ("tensor", "shape", "lowest", "mean", "highest", "zeros")


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """One tensor that a layer took in or put out, as it was at that moment.

    Attributes:
        name: ``"input"``, ``"input 0"``, ``"output"`` or what the path to it says.
        shape: as the network has it, the batch included.
        values: float32 on the CPU, of that shape.
        maps: how it is drawn, ``(C, H, W)``; None where there is nothing to draw.
        read: how the shape was read, where that needs saying.
    """

    name: str
    shape: tuple[int, ...]
    values: NDArray[np.float32]
    maps: NDArray[np.float32] | None
    read: str


def run(subject: Subject, *, layer: str, call: int, scale: str) -> LensOutput:
    """One call of the layer: what it took in, copied before it ran, and what it put out.

    Colours are shared where the values mean the same on both sides: by default for layers without
    weights, such as activations and pooling. Statistics are over all finite values; "zeros" is the
    share of values that are exactly 0.

    Raises:
        SettingError: the layer has no such call.
        ModelError: the network can't take this input.
        HookVizError: the layer took in and put out nothing that can be drawn.
    """
    info = next(found for found in subject.survey.layers if found.name == layer)
    if call >= info.calls:
        raise SettingError(
            f"call={call}: {layer} runs {info.calls} time{'s' if info.calls > 1 else ''} in a "
            f"pass, and its calls are counted from 0."
        )
    seen = _watched(subject, layer, call)
    module = subject.model.network.get_submodule(layer)
    ratio = subject.shape[-2] / subject.shape[-1]
    before = tuple(_parts("input", seen.given, module, ratio))
    after = tuple(_parts("output", seen.made, module, ratio))
    grids = _grids(before, after, shared=_is_shared(scale, module))
    if not grids:
        raise HookVizError(
            f"{layer} of {subject.model.title} neither takes in nor puts out numbers that can be "
            f"drawn. {subject.convs[0].name if subject.convs else 'A conv layer'} does."
        )
    table = TablePanel("In numbers", _HEAD, tuple(map(_row, (*before, *after))))
    values = {part.name.replace(" ", "_"): part.values for part in (*before, *after)}
    return (TextPanel(_says(info, seen, before, after)), *grids, table), values


Tensors = list[tuple[tuple[str, ...], Tensor]]
"""Tensors by their paths inside what holds them."""


class _Watch:
    """Copies what one call of a layer takes in and puts out, and ends the pass after it.

    Attributes:
        given, made: the copies, on the CPU.
        others: the kinds of the arguments that hold no tensor.
        in_place: whether the layer wrote into its input.
        seen: whether the call took place.
    """

    def __init__(self, subject: Subject, layer: str, call: int) -> None:
        self.given: Tensors = []
        self.made: Tensors = []
        self.others: tuple[str, ...] = ()
        self.in_place = False
        self.seen = False
        self.telling = Telling(
            subject.progress, sum(found.calls for found in subject.survey.layers)
        )
        self._wanted = (layer, call)
        self._versions: list[int] = []

    def before(self, call: hooks.Call) -> None:
        """Take in a call that is about to run."""
        if (call.layer, call.index) == self._wanted:
            self.given = _copies(call.inputs)
            self._versions = _versions(call.inputs)

    def after(self, call: hooks.Call) -> None:
        """Take in a call that has run."""
        self.telling.step()
        if (call.layer, call.index) == self._wanted:
            self.seen, self.made = True, _copies(call.output)
            self.in_place = _versions(call.inputs) != self._versions
            self.others = tuple(
                type(value).__name__ for value in call.inputs if not _versions(value)
            )
            raise hooks.StopForward


def _watched(subject: Subject, layer: str, call: int) -> _Watch:
    """One pass up to the end of one call of a layer."""
    names = [found.name for found in subject.survey.layers]
    watch = _Watch(subject, layer, call)
    with (
        private_replica(subject.model) as replica,
        hooks.before(replica, [layer], watch.before),
        hooks.observe(replica, names, watch.after),
    ):
        forward_pass(subject.model, replica, subject.model_input.tensor, watch.telling)
    if not watch.seen:
        raise HookVizError(f"This pass did not run call {call} of {layer}. Its call 0 comes first.")
    return watch


def _copies(value: Any) -> Tensors:
    return [
        (path, tensor.detach().to("cpu", copy=True)) for path, tensor in hooks.tensors_in(value)
    ]


def _versions(value: Any) -> list[int]:
    return [version(tensor) for _, tensor in hooks.tensors_in(value)]


def _parts(side: str, tensors: Tensors, module: nn.Module, ratio: float) -> Iterator[_Part]:
    for path, tensor in tensors:
        where = path if side == "output" else path[0 if len(tensors) > 1 else 1 :]
        real = tensor.abs() if tensor.is_complex() else tensor
        values: NDArray[np.float32] = real.float().numpy()
        maps, read = _maps(values, module, ratio)
        yield _Part(" ".join((side, *where)), tuple(tensor.shape), values, maps, read)


def _maps(
    values: NDArray[np.float32], module: nn.Module, ratio: float
) -> tuple[NDArray[np.float32] | None, str]:
    """A tensor as ``(C, H, W)``, and how its shape was read; None where it is empty.

    `ratio` is height / width of the network's input: of two orders of the dimensions, the one
    whose maps come closer to it is taken to be the network's.
    """
    if not values.size:
        return None, "empty"
    says = []
    if values.ndim > 3:
        if len(values) > 1:
            says.append(f"the first of {len(values)} in the batch")
        values = values[0]
    elif values.ndim > 1 and len(values) == 1:
        values = values[0]
    if values.ndim <= 1:
        return values.reshape(-1, 1, 1), "a vector, one cell per number" if values.ndim else ""
    if values.ndim == 2:
        return values[None], "a row per place, a column per feature"
    if values.ndim > 3:
        says.append("leading dimensions laid out one after the other")
        return values.reshape(-1, *values.shape[-2:]), "; ".join(says)
    if _channels_last(values.shape, module, ratio):
        says.append("channels last: rows × columns × channels")
        values = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    return values, "; ".join(says)


def _channels_last(shape: tuple[int, ...], module: nn.Module, ratio: float) -> bool:
    if type(module).forward in (nn.Linear.forward, nn.LayerNorm.forward):
        return True
    if isinstance(module, nn.modules.conv._ConvNd | nn.modules.batchnorm._BatchNorm):
        return False
    first, second, third = shape
    return abs(log(first / second / ratio)) < abs(log(second / third / ratio))


def _is_shared(scale: str, module: nn.Module) -> bool:
    learned = any(True for _ in module.parameters())
    return scale == "shared" or (scale == "automatic" and not learned)


def _grids(before: Sequence[_Part], after: Sequence[_Part], *, shared: bool) -> tuple[Panel, ...]:
    """A grid per drawable tensor, with the same colours for the same values where `shared`."""
    parts = [
        part
        for side in (before, after)
        for part in [part for part in side if part.maps is not None][:_MOST_GRIDS]
    ]
    grids = [_grid(part) for part in parts]
    ends = [(grid.stats.lowest, grid.stats.highest) for grid in grids]
    # a tensor with one value everywhere has no colours to share, and its legend names its value
    together = shared and len(grids) > 1 and all(low < high for low, high in ends)
    if together:
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        grids = [_rescaled(_grid(part, signed=low < 0), low, high, part) for part in parts]
    same = "Input and output have the same colours for the same values." if together else ""
    return tuple(
        GridPanel(
            f"{part.name.capitalize()}: {'×'.join(map(str, part.shape))}",
            grid,
            " ".join(filter(None, (f"Read as {part.read}." if part.read else "", same))),
        )
        for part, grid in zip(parts, grids, strict=True)
    )


def _grid(part: _Part, *, signed: bool | None = None) -> Grid:
    assert part.maps is not None
    if signed is None:
        signed = bool(np.nanmin(part.maps, initial=0) < 0)
    return make_grid(part.maps, scale="symmetric" if signed else "layer", title=part.name)


def _rescaled(grid: Grid, low: float, high: float, part: _Part) -> Grid:
    """The grid with its end colours standing for `low` and `high`; zero in the middle if signed."""
    assert part.maps is not None
    if grid.limits.scale == "symmetric":
        high = max(-low, high)
        low = -high
    count = len(grid.stats)
    ends = Limits(grid.limits.scale, np.full(count, low), np.full(count, high))
    levels = quantise(part.maps, ends.low, ends.high)
    levels.flags.writeable = False
    return replace(grid, limits=ends, levels=levels)


def _row(part: _Part) -> tuple[str | int | float, ...]:
    finite = part.values[np.isfinite(part.values)]
    shape = times(part.shape) or "one number"
    if not finite.size:
        return (part.name, shape, "–", "–", "–", "–")
    return (
        part.name,
        shape,
        number(float(finite.min())),
        number(float(finite.mean(dtype=np.float64))),
        number(float(finite.max())),
        _share(float(np.mean(part.values == 0))),
    )


def _says(info: LayerInfo, seen: _Watch, before: Sequence[_Part], after: Sequence[_Part]) -> str:
    takes, gives = (
        " and ".join(times(part.shape) or "one number" for part in side) or "no tensor"
        for side in (before, after)
    )
    says = [f"{info.name} ({info.kind}) takes in {takes} and puts out {gives}."]
    if len(before) == len(after) == 1 and before[0].shape == after[0].shape:
        same = (before[0].values == after[0].values) | (
            np.isnan(before[0].values) & np.isnan(after[0].values)
        )
        changed = 1 - float(np.mean(same)) if same.size else 0.0
        says.append(
            f"{_share(changed)} of the values come out changed."
            if changed
            else "Every value comes out as it went in."
        )
    if seen.in_place:
        says.append("It works in place: it writes its output over its input.")
    if seen.others:
        says.append(f"It is also given {', '.join(seen.others)}, which can't be drawn.")
    return " ".join(says)


def _share(part: float) -> str:
    return f"{number(100 * part)} %"


LENS = Lens(
    slug="inputs",
    title="Input and output",
    group="Activations",
    sentence="What one layer takes in beside what it puts out, and what it changes.",
    run=run,
    parameters=(
        LayerChoice(kind="all", default="first"),
        WholeNumber(
            name="call",
            label="Call",
            help="Which run of a layer that runs more than once, from 0.",
            low=0,
            high=9_999,
            default=0,
        ),
        OneOf(
            name="scale",
            label="Colours",
            choices=("automatic", "shared", "own"),
            help="Whether input and output have the same colours; layers without weights do.",
        ),
    ),
)
