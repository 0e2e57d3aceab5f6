"""What is wrong with the numbers inside a network: NaN, infinities, dead and saturated units.

Everything is of one pass over one image, so "dead" means that a unit says nothing about this image.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, ModelError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import Telling, forward_pass, private_replica
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice
from hookviz.types import Address
from hookviz.wording import number

Floats = NDArray[np.float64]
EXPLODING = 1e4
"""Times the largest |x| of the network's input (1 at least)."""
SATURATED = 0.01
"""Share of the output's range that counts as its end."""

_BINS = 32
_LEAST_CELLS = 9
_NUMBERS = ("nan", "inf", "largest", "growth", "units", "dead", "saturated")
_HEAD = ("layer", "kind", "NaN", "Inf", "max |x|", "× its input", "dead units", "saturated (%)")
_NO_UNITS = {"Flatten", "Permute", "Identity", "Dropout", "Dropout2d", "StochasticDepth"}


def run(subject: Subject, *, layer: str | None) -> LensOutput:
    """Every layer's outputs in order of execution, each call by itself.

    The first layer with NaN or infinities in its output is named, with whether its input or its
    own parameters had them already.

    A unit is a channel, or one number of a vector. It is dead on this image where it is 0
    everywhere, or has the same value everywhere in a map of at least 9 cells: a pooling window
    covers all of a smaller one, which is then the same everywhere and yet says something.

    A sigmoid, tanh or their hard forms are saturated where the output is within 1 % of its range
    from either end: below 0.01 or above 0.99 for a sigmoid, beyond ±0.98 for a tanh. There the
    slope is at most a twenty-fifth of the steepest (Glorot & Bengio, 2010).

    Activations explode where max |x| is over 10,000 times that of the network's input, or of 1 if
    that is larger: half precision ends at 65,504.

    Values, one per call: ``nan`` and ``inf`` counts, ``largest`` (max |x| of the finite values),
    ``growth`` (that over the same of what the layer took in), ``units``, ``dead``, ``saturated``
    (NaN where it has no meaning); and ``histogram`` and ``edges`` of the chosen layer.

    Raises:
        ModelError: the network can't take this input, or the chosen layer puts out no real numbers.
        HookVizError: it runs no layer.
    """
    if not subject.survey.layers:
        raise HookVizError(
            f"{subject.model.title} runs no layer whose numbers could be looked at. Every model of "
            "the catalog does, for example shapesnet."
        )
    last = subject.convs[-1].name if subject.convs else subject.survey.layers[-1].name
    watch = _Watch(subject, layer or last)
    watch.look()
    rows = watch.rows
    first = next((row for row in rows if row.bad), None)
    chosen = layer or (first.address.layer if first else last)
    if chosen not in watch.kept:
        raise ModelError(
            f"Layer {chosen!r} of {subject.model.title} puts out no real numbers to look at."
        )
    numbers = watch.kept[chosen]
    floor = max(1.0, _largest(subject.model_input.tensor))
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    counts, edges = np.histogram(finite, _BINS)
    values = {
        **{name: np.array([getattr(row, name) for row in rows]) for name in _NUMBERS},
        "histogram": counts,
        "edges": edges,
    }
    panels: tuple[Panel, ...] = (
        _source(subject, rows, first),
        _rest(rows, EXPLODING * floor),
        *_charts(rows, EXPLODING * floor),
        _histogram(chosen, numbers, counts, edges),
        _table(rows),
    )
    return panels, values


@dataclass(frozen=True, slots=True)
class _Row:
    """One tensor that one call of a layer put out; see `run`."""

    address: Address
    kind: str
    count: int
    nan: int
    inf: int
    largest: float
    growth: float
    units: int
    dead: int
    saturated: float
    input_bad: bool
    bad_parameters: tuple[str, ...]

    @property
    def bad(self) -> bool:
        return bool(self.nan or self.inf)


class _Watch:
    """One pass that looks at every layer as it runs, before an in-place layer writes over it."""

    def __init__(self, subject: Subject, wanted: str) -> None:
        self.rows: list[_Row] = []
        self.kept: dict[str, NDArray[np.float32]] = {}
        """The numbers of the wanted layer and of the first bad one, flat."""
        self._subject = subject
        self._wanted = wanted
        self._calls = {info.name: info.calls for info in subject.survey.layers}
        self._modules: dict[str, nn.Module] = {}
        self._inputs: dict[str, tuple[bool, float]] = {}
        self._channels_last = False
        self._shape: tuple[int, ...] = ()
        self._telling = Telling(subject.progress)

    def look(self) -> None:
        """Run the network."""
        with (
            private_replica(self._subject.model) as replica,
            hooks.before(replica, self._calls, self._take_in),
            hooks.observe(replica, self._calls, self._put_out),
        ):
            self._modules = dict(replica.named_modules())
            forward_pass(
                self._subject.model, replica, self._subject.model_input.tensor, self._telling
            )

    def _take_in(self, call: hooks.Call) -> None:
        given = [each for _, each in hooks.tensors_in(call.inputs) if each.is_floating_point()]
        bad = not all(bool(torch.isfinite(each).all()) for each in given)
        self._inputs[call.layer] = bad, max(map(_largest, given), default=np.nan)

    def _put_out(self, call: hooks.Call) -> None:
        module = self._modules[call.layer]
        input_bad, taken = self._inputs.pop(call.layer, (False, np.nan))
        for path, tensor in hooks.tensors_in(call.output):
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            values = tensor[0] if len(tensor.shape) > 1 and len(tensor) == 1 else tensor
            units, dead = self._units(module, values)
            largest = _largest(values)
            row = _Row(
                address=Address(call.layer, call.index, path),
                kind=type(module).__name__,
                count=values.numel(),
                nan=int(torch.isnan(values).sum()),
                inf=int(torch.isinf(values).sum()),
                largest=largest,
                growth=largest / taken if taken else np.nan,
                units=units,
                dead=dead,
                saturated=_saturated(module, values),
                input_bad=input_bad,
                bad_parameters=_bad_parameters(module),
            )
            first = row.bad and not any(each.bad for each in self.rows)
            if (first or call.layer == self._wanted) and call.layer not in self.kept:
                self.kept[call.layer] = values.flatten().to("cpu", torch.float32, copy=True).numpy()
            self.rows.append(row)
        self._telling.share(len(self.rows) / sum(self._calls.values()))

    def _units(self, module: nn.Module, values: Tensor) -> tuple[int, int]:
        """How many units there are and how many of them are dead."""
        shape, before = tuple(values.shape), self._shape
        self._shape = shape
        if isinstance(module, nn.Linear) or type(module) is nn.LayerNorm:
            self._channels_last = True
        elif shape != before or isinstance(module, nn.modules.conv._ConvNd):
            self._channels_last = False  # else as in the layer before, whose shape it has
        if type(module).__name__ in _NO_UNITS or not shape:
            return 0, 0
        by_unit = values.movedim(-1 if self._channels_last else 0, 0).reshape(
            shape[-1] if self._channels_last else shape[0], -1
        )
        dead = (by_unit == 0).all(1)
        if by_unit.shape[1] >= _LEAST_CELLS:
            dead |= by_unit.amax(1) == by_unit.amin(1)
        return len(by_unit), int(dead.sum())


def _largest(tensor: Tensor) -> float:
    """Max |x| of the finite values; 0 without any."""
    size = tensor.abs()
    largest = float(size.max()) if size.numel() else 0.0
    if not np.isfinite(largest):
        finite = size[torch.isfinite(size)]
        largest = float(finite.max()) if finite.numel() else 0.0
    return largest


def _saturated(module: nn.Module, values: Tensor) -> float:
    """The share of outputs at the ends of a bounded activation's range; NaN for other layers."""
    if isinstance(module, nn.Sigmoid | nn.Hardsigmoid):
        low, high = 0.0, 1.0
    elif isinstance(module, nn.Tanh | nn.Softsign):
        low, high = -1.0, 1.0
    elif isinstance(module, nn.Hardtanh) and not isinstance(module, nn.ReLU6):
        low, high = float(module.min_val), float(module.max_val)
    else:
        return np.nan
    end = SATURATED * (high - low)
    return float(((values < low + end) | (values > high - end)).float().mean())


def _bad_parameters(module: nn.Module) -> tuple[str, ...]:
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return tuple(
        name
        for name, each in own
        if each.is_floating_point() and not bool(torch.isfinite(each).all())
    )


def _source(subject: Subject, rows: list[_Row], first: _Row | None) -> TextPanel:
    """Where NaN and infinities begin."""
    if first is None:
        return TextPanel(
            f"No NaN and no infinity in {len(rows):,} outputs of {len(subject.survey.layers):,} "
            "layers.",
            "good",
        )
    kinds = [
        f"{count:,} {name}"
        for count, name in ((first.nan, "NaN"), (first.inf, "infinite"))
        if count
    ]
    if first.bad_parameters:
        why = f"Its own {' and '.join(first.bad_parameters)} has NaN or infinities."
    elif not first.input_bad:
        why = "Its input and its weights are finite: its own arithmetic overflowed or is undefined."
    elif bool(torch.isfinite(subject.model_input.tensor).all()):
        why = (
            "Its input had them already, and every layer before it was fine: a function between "
            "the layers made them, such as a division or an addition."
        )
    else:
        why = "The network's input has them already."
    also = sum(row.bad for row in rows) - 1
    return TextPanel(
        f"{first.address} ({first.kind}) is the first layer with {' and '.join(kinds)} of "
        f"{first.count:,} numbers. {why} {also:,} later outputs have them too.",
        "bad",
    )


def _rest(rows: list[_Row], limit: float) -> TextPanel:
    """Dead and saturated units and explosions, in words."""
    said, bad = [], False
    with_units = [row for row in rows if row.units]
    silent = [row for row in with_units if row.dead == row.units]
    worst = max(with_units, key=lambda row: row.dead / row.units, default=None)
    if silent:
        bad = True
        said.append(f"Every unit of {silent[0].address} is dead on this image.")
    elif worst and worst.dead:
        said.append(
            f"Most dead units on this image: {worst.dead:,} of {worst.units:,} in {worst.address}."
        )
    else:
        said.append("No unit is dead on this image.")
    bounded = [row for row in rows if row.saturated >= 0]
    if bounded:
        most = max(bounded, key=lambda row: row.saturated)
        said.append(
            f"Most saturated: {number(100 * most.saturated)} % of the outputs of {most.address}."
            if most.saturated
            else "Nothing is saturated."
        )
    large = [row for row in rows if row.largest > limit]
    if large:
        bad = True
        said.append(
            f"Activations explode in {len(large):,} of {len(rows):,} outputs, first in "
            f"{large[0].address}: |x| up to {number(large[0].largest)}."
        )
    return TextPanel(" ".join(said), "bad" if bad else "plain")


def _charts(rows: list[_Row], limit: float) -> tuple[ChartPanel, ChartPanel]:
    labels = tuple(str(row.address) for row in rows)
    shares = {"dead": np.array([100 * row.dead / (row.units or np.nan) for row in rows])}
    saturated = np.array([100 * row.saturated for row in rows])
    if np.isfinite(saturated).any():
        shares["saturated"] = saturated
    dead = ChartPanel(
        "Dead and saturated units" if "saturated" in shares else "Dead units",
        labels,
        shares,
        kind="lines",
        unit="of a layer (%)",
        caption="On this image. Dead: 0 or constant everywhere. Saturated: within 1 % of an end.",
    )
    sizes = ChartPanel(
        "Largest activation",
        labels,
        {
            "max |x|": np.array([row.largest for row in rows]),
            "explodes above": np.full(len(rows), limit),
        },
        kind="lines",
        unit="max |x|",
        log=True,
        caption="Of the finite values, in order of execution.",
    )
    return dead, sizes


def _histogram(
    layer: str, numbers: NDArray[np.float32], counts: Floats, edges: Floats
) -> ChartPanel:
    odd = len(numbers) - int(np.isfinite(numbers).sum())
    middles = (edges[1:] + edges[:-1]) / 2
    return ChartPanel(
        f"What {layer} puts out",
        tuple(number(middle) if place % 4 == 0 else "" for place, middle in enumerate(middles)),
        {"values": counts.astype(np.float64)},
        unit="how many values",
        log=True,
        caption=f"{len(numbers):,} values, {odd:,} of them NaN or infinite and left out.",
    )


def _table(rows: list[_Row]) -> TablePanel:
    return TablePanel(
        "Every layer in order of execution",
        _HEAD,
        tuple(
            (
                str(row.address),
                row.kind,
                row.nan,
                row.inf,
                number(row.largest),
                number(row.growth) if np.isfinite(row.growth) else "–",
                f"{row.dead:,} of {row.units:,}" if row.units else "–",
                number(100 * row.saturated) if np.isfinite(row.saturated) else "–",
            )
            for row in rows
        ),
    )


LENS = Lens(
    slug="health",
    title="Health",
    group="Checks",
    sentence="Where NaN, infinities, dead or saturated units and exploding values begin.",
    run=run,
    parameters=(
        LayerChoice(
            label="Histogram of",
            kind="all",
            default="none",
            help="The first bad layer if left open, or the last conv layer.",
        ),
    ),
)
