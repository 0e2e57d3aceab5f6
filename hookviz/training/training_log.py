"""Keep what was recorded of a training run: as a table, files and a chart, with findings."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite, log10, nan
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hookviz.drawing.charts import COLOURS, Chart, chart_png
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, one_of
from hookviz.wording import number

_VANISHING = 1e-4  # of the largest layer's gradient in the same step
_EXPLODING = 1e3  # times the median of the layer's own steps before
_JUMP = 6.0  # robust z-score
_LEAST_JUMP = 3.0  # times or a third: less is no jump, however steady it was before
_MEMORY = 50  # recorded steps that a jump is measured against
_FEWEST = 8
MEASURES = {
    "gradient_norm": "norm of the gradient",
    "update_ratio": "update / weight",
    "mean": "mean of the output",
    "deviation": "standard deviation of the output",
    "dead": "share of dead units",
    "weight_norm": "norm of the weights",
}
"""Columns of the table that are numbers, and what they are."""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """Numbers of one layer at one step; None where there is no such number.

    Attributes:
        step: counted from 0: a forward pass with gradients, and those that follow it before a
            backward pass, are one step with that.
        layer: the module's dotted path.
        gradient_norm: Euclidean norm of the gradient of all the layer's own parameters, as
            ``parameter.grad`` has it after the backward pass.
        weight_norm: Euclidean norm of these parameters when the step began.
        update_ratio: norm of what the step changed in them, over `weight_norm`.
        mean, deviation: of all numbers that the layer put out in the step.
        dead: the share of units (channels, or numbers of a vector) that put out 0 everywhere, for
            every image of the step; None where channels can't be told from rows or places.
    """

    step: int
    layer: str
    gradient_norm: float | None = None
    weight_norm: float | None = None
    update_ratio: float | None = None
    mean: float | None = None
    deviation: float | None = None
    dead: float | None = None


@dataclass(frozen=True, slots=True)
class TrainingFinding:
    """Something unusual in a training run, at the first step where it shows.

    Attributes:
        kind: ``"not finite"``, ``"vanishing"``, ``"exploding"`` or ``"jump"``.
        step: as in `TrainingRow`.
        layer: the module's dotted path.
        measure: the column of the table.
        value: the number there.
        usual: the number that it is compared with.
    """

    kind: str
    step: int
    layer: str
    measure: str
    value: float
    usual: float

    def __str__(self) -> str:
        """Return the finding as a sentence."""
        beside = {
            "not finite": "",
            "vanishing": f"; the largest of that step is {number(self.usual)}",
            "exploding": f"; the median before is {number(self.usual)}",
            "jump": f"; the median before is {number(self.usual)}",
        }
        return (
            f"{self.layer}, step {self.step}: {self.kind}, {MEASURES[self.measure]} "
            f"{number(self.value)}{beside[self.kind]}."
        )


@dataclass(eq=False)
class TrainingLog:
    """Log that `record` fills while a training run goes on.

    Attributes:
        rows: one for each recorded step and layer, in order.
    """

    rows: list[TrainingRow] = field(default_factory=list, repr=False)

    def table(self) -> dict[str, list[Any]]:
        """Return the rows as columns, which ``pandas.DataFrame(log.table())`` takes as they are."""
        return {
            column.name: [getattr(row, column.name) for row in self.rows]
            for column in fields(TrainingRow)
        }

    def save(self, path: str | Path) -> None:
        """Write the table as ``.parquet`` or ``.csv``, by the path's ending.

        Raises:
            SettingError: it ends otherwise, or pyarrow, which Parquet needs, is not installed.
        """
        path = Path(path).expanduser()
        ending = one_of("ending for a table", path.suffix.lower(), (".parquet", ".csv"))
        table = self.table()
        if ending == ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
            return
        try:
            import pyarrow  # noqa: PLC0415 - only this needs it
            from pyarrow import parquet  # noqa: PLC0415
        except ImportError as error:
            raise SettingError(
                "A Parquet file needs pyarrow, which is not installed. Save it as .csv, or install "
                "pyarrow."
            ) from error
        parquet.write_table(pyarrow.table(table), path)

    def chart(self, measure: str = "gradient_norm", layers: Sequence[str] | None = None) -> bytes:
        """Draw one column over the steps as a PNG, a line for each layer.

        Args:
            measure: a column of the table; norms and ratios stand on a logarithmic axis.
            layers: which, up to five; by default five from the first to the last that have it.

        Raises:
            SettingError: there is no such column, or more layers are asked for than lines can be
                told apart.
            UnknownLayerError: nothing was recorded of a layer.
            HookVizError: nothing was recorded.
        """
        one_of("column of the log", measure, MEASURES)
        lines = self._lines(measure)
        if not lines:
            raise HookVizError(f"The log has no {measure} yet: no step was recorded.")
        if layers is None:
            names = list(lines)
            spread = np.linspace(0, len(names) - 1, min(len(names), len(COLOURS)))
            layers = [names[round(position)] for position in spread]
        if len(layers) > len(COLOURS):
            raise SettingError(f"{len(layers)} lines are too many to tell apart; give up to five.")
        for name in layers:
            if name not in lines:
                raise UnknownLayerError(f"layer with a {measure} in this log", name, lines)
        steps = sorted({row.step for row in self.rows})
        chart = Chart(
            title=MEASURES[measure],
            labels=tuple(map(str, steps)),
            series={
                name: np.array([lines[name].get(step, nan) for step in steps]) for name in layers
            },
            kind="lines",
            unit=MEASURES[measure],
            places="recorded step",
            log=measure in ("gradient_norm", "update_ratio", "weight_norm"),
        )
        return chart_png(chart)

    def _repr_png_(self) -> bytes | None:
        """Show the gradients over the steps in a notebook; nothing before there are some."""
        return self.chart() if self._lines("gradient_norm") else None

    def findings(self) -> tuple[TrainingFinding, ...]:
        """Return what is unusual, in order of steps: each kind once for each layer and column.

        A gradient or an output that is not finite; a gradient that is vanishing, below 1/10,000 of
        the largest layer's in the same step; one that is exploding, above 1,000 times the median of
        the layer's steps before. And jumps of gradients, updates and deviations: the modified
        z-score of log₁₀ x against up to 50 steps before, 0.6745·(x − median) / MAD (Iglewicz &
        Hoaglin 1993), is beyond ±6, and x at least 3 times their median or a third of it.
        """
        largest: dict[int, float] = {}
        for row in self.rows:
            if row.gradient_norm is not None and isfinite(row.gradient_norm):
                largest[row.step] = max(largest.get(row.step, 0.0), row.gradient_norm)
        first: dict[tuple[str, str, str], TrainingFinding] = {}
        for measure in ("gradient_norm", "update_ratio", "deviation"):
            for layer, values in self._lines(measure).items():
                for finding in _findings(layer, measure, values, largest):
                    first.setdefault((finding.kind, layer, measure), finding)
        return tuple(sorted(first.values(), key=lambda finding: finding.step))

    def write_to(self, writer: Any) -> None:
        """Write every number to a TensorBoard ``SummaryWriter``, as ``layer/column``."""
        for row in self.rows:
            for name, value in scalars([row]).items():
                writer.add_scalar(name, value, row.step)

    def _lines(self, measure: str) -> dict[str, dict[int, float]]:
        """Return a column's numbers by layer and step, without those that are None."""
        lines: dict[str, dict[int, float]] = {}
        for row in self.rows:
            value = getattr(row, measure)
            if value is not None:
                lines.setdefault(row.layer, {})[row.step] = value
        return lines


def scalars(rows: Sequence[TrainingRow]) -> dict[str, float]:
    """Return every number of some rows as ``layer/column``."""
    found = {f"{row.layer}/{name}": getattr(row, name) for row in rows for name in MEASURES}
    return {name: value for name, value in found.items() if value is not None}


def _findings(
    layer: str, measure: str, values: dict[int, float], largest: dict[int, float]
) -> Iterable[TrainingFinding]:
    before: list[float] = []
    for step, value in values.items():
        usual = median(before) if before else nan
        if not isfinite(value):
            yield TrainingFinding("not finite", step, layer, measure, value, usual)
            continue
        if measure == "gradient_norm":
            if value < _VANISHING * largest.get(step, 0.0):
                yield TrainingFinding("vanishing", step, layer, measure, value, largest[step])
            if before and value > _EXPLODING * usual > 0:
                yield TrainingFinding("exploding", step, layer, measure, value, usual)
        if len(before) >= _FEWEST and _is_jump(value, before[-_MEMORY:]):
            jump = median(before[-_MEMORY:])
            yield TrainingFinding("jump", step, layer, measure, value, jump)
        before.append(value)


def _is_jump(value: float, before: list[float]) -> bool:
    if min(value, *before) <= 0:
        return False
    logs = [log10(earlier) for earlier in before]
    middle = median(logs)
    spread = median(abs(earlier - middle) for earlier in logs)
    distance = abs(log10(value) - middle)
    return distance > log10(_LEAST_JUMP) and 0.6745 * distance > _JUMP * spread
