"""Change parts of a layer's output one by one, and score each: ablated channels, patched cells.

Many changes share a batch: row i of the batch has part pᵢ changed, each time that the layer runs.
So the rows must not depend on each other, which is checked on the way: two rows more have either
half of the parts changed, whose scores are known from passes of their own. Where a batch gives
anything else, the next simpler strategy is taken, in the end one part at a time.

Halves, since most numbers that a network takes over its batch change with one of them: the largest
value, say, of an ablated layer lies in one half of the channels, and a row without that half shows
it. Without one channel, all rows but one have it.

It takes about as long as the part of the network behind the layer, once per part; with the simpler
strategies, a whole pass per part.

A channel is ablated by writing 0 at the layer's own output, each time that the layer runs; of a
linear layer in every token, those that stand for no cell included, such as a class token.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.drawing.charts import Chart, titled_figure
from hookviz.errors import ModelError
from hookviz.explaining.attribution.batched_passes import (
    agree_within,
    batch_tolerance,
    progress_of_part,
    rising,
)
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.channels_last import faster_model, lay_out, rounding_note
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.hooking.hooks import map_tensors
from hookviz.hooking.torch_functions import EveryFunction
from hookviz.language.saying import say
from hookviz.types import (
    TOKENS,
    UNKNOWN,
    WINDOWS,
    ActivationKey,
    LayerInfo,
    Model,
    ModelInput,
    Progress,
    ignore,
)
from hookviz.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_IN_PLACE = frozenset(("add_", "sub_", "mul_", "div_"))
"""What torch calls for ``a += b`` and its like, whose result takes the name of `a`."""

_JOINS = frozenset(("cat", "concat", "concatenate"))


class GrowingRows(EveryFunction):
    """Torch function mode that repeats a single row where it is joined to many rows.

    A hook can put out N rows where one image went in, and broadcasting adds what comes from before
    the layer, such as a residual connection, to each of them. It does not where one row is written
    into (``one += many``) or both are concatenated; here the one is repeated.

    A network that goes on with `one` itself (``one.add_(many)``, which torch can't tell from the
    former), or whose code depends on the number of rows, fails or computes something else: callers
    have to compare.
    """

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return what `func` returns, with N rows where any operand has N."""
        name = getattr(func, "__name__", "")
        if name in _IN_PLACE and len(args) > 1:
            one, many, *more = args
            if isinstance(many, Tensor) and _is_one_of(one, many):
                args = (one.expand(len(many), *one.shape[1:]).clone(), many, *more)
        elif name in _JOINS and isinstance(args[0] if args else None, list | tuple):
            dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))
            if dim % max(1, args[0][0].ndim):
                args = (_as_many(args[0]), *args[1:])
        return func(*args, **kwargs)


def _as_many(tensors: list[Tensor] | tuple[Tensor, ...]) -> list[Tensor]:
    longest = max(tensors, key=lambda tensor: len(tensor) if tensor.ndim else 0)
    return [
        _repeated(tensor, len(longest)) if _is_one_of(tensor, longest) else tensor
        for tensor in tensors
    ]


def _repeated(one: Tensor, count: int) -> Tensor:
    many = one.expand(count, *one.shape[1:])
    if one.ndim == 4 and one.is_contiguous(memory_format=torch.channels_last):
        many = many.contiguous(memory_format=torch.channels_last)  # else the joined tensor is not
    return many


def _is_one_of(one: Tensor, many: Tensor) -> bool:
    """Return whether `one` has a single row and `many` has more, in as many dimensions."""
    return one.ndim == many.ndim > 1 and len(one) == 1 < len(many)


MAX_WORK = 1e13
"""Multiply-adds of all parts one by one beyond which it is refused: minutes on a few cores."""

_MAX_BATCH_BYTES = 256 << 20  # of activations
_MAX_ROWS = 128


class PartChanges(ABC):
    """Runs passes with parts of one layer's output changed, each by itself."""

    def __init__(self, model: Model, model_input: ModelInput, layer: LayerInfo, count: int) -> None:
        """Take a layer's `count` parts, by number from 0."""
        self._model = self._passes = model  # `_passes` is what runs now
        self._images = model_input.tensor
        self._trace = input_trace(model, model_input)
        self._layer = layer
        self._count = count
        self._calls = {info.name: info.calls for info in self._trace.layers}
        self._calls[layer.name] = layer.calls  # it can be a block
        self._done = 0  # parts

    @abstractmethod
    def change(self, row: Tensor, _call: hooks.Call, parts: Sequence[int]) -> None:
        """Change these parts of a call's output for one image.

        `row` is a copy to write to, whose numbers have the order of the first tensor that the call
        puts out for one image alone; its axes can be others.
        """

    def scores_with_each(self, before: Tensor, reporter: ProgressReporter) -> Tensor:
        """Return the scores with each part changed, float64 ``(parts, classes)``.

        First with one image up to the layer and a row per part from there on, where anything from
        before the layer, such as a residual connection, is repeated. Then with a row per part all
        the way. Then one by one, as for a network that takes one image alone.

        Batches of a convolutional network run with channels last in memory, to rounding (see
        `hookviz.hooking.channels_last`); what runs one by one runs plainly.

        `before` are the scores with no part changed, float64 ``(classes,)``.

        Raises:
            ModelError: the network can't go on with a part changed.
        """
        self._passes = faster_model(self._model, self._images)
        half_scores = self._with_halves(before, reporter)
        if half_scores is not None:
            for images, rows in ((1, self._max_rows(self._layer.name)), (None, self._max_rows())):
                scores = self._in_batches(images, rows, half_scores, reporter)
                if scores is not None:
                    return scores
        self._done = 0
        self._passes = self._model
        return torch.cat([self._one_by_one(part, reporter) for part in range(self._count)])

    @property
    def how(self) -> str:
        """How the scores of the last passes are rounded, in words; empty of plain passes."""
        return rounding_note(self._passes)

    def _with_halves(self, before: Tensor, reporter: ProgressReporter) -> "_HalfScores | None":
        """Score either half of the parts changed in passes of their own; None if they fail."""
        count = self._count
        if count == 1:
            return None
        halves = (range(count // 2), range(count // 2, count))
        try:
            scores = torch.cat([self._scores([half], 1, reporter) for half in halves])
        except ModelError as error:
            if reporter.was_ended_by(error):
                raise
            return None
        tolerance = batch_tolerance(self._model.network, torch.cat([before[None], scores]))
        return _HalfScores(halves, scores, tolerance)

    def _in_batches(
        self, images: int | None, rows: int, half_scores: "_HalfScores", reporter: ProgressReporter
    ) -> Tensor | None:
        """Change `rows` parts in each pass; None where the rows depend on each other.

        The first and the last batch have two rows more, whose scores are known.
        """
        count = self._count
        scores: list[Tensor] = []
        self._done = 0
        if rows == 1 or not self._trace.is_static:
            return None  # code that branches on values may branch differently for a batch
        for start in range(0, count, rows):
            parts = range(start, min(start + rows, count))
            changed: list[Sequence[int]] = [[part] for part in parts]
            if start == 0 or parts.stop == count:
                changed += half_scores.halves
            try:
                batch = self._scores(changed, images or len(changed), reporter)
            except ModelError as error:
                if reporter.was_ended_by(error):
                    raise
                return None  # one image alone does go through, as the halves did
            if len(changed) > len(parts) and not half_scores.agree(batch[len(parts) :]):
                return None
            scores.append(batch[: len(parts)])
            self._done += len(parts)
        return torch.cat(scores)

    def scores_with(self, part: int, reporter: ProgressReporter) -> Tensor:
        """Return the scores with one part changed, float64 ``(classes,)``.

        Raises:
            ModelError: the network can't go on with it.
        """
        return self._one_by_one(part, reporter)[0]

    def _one_by_one(self, part: int, reporter: ProgressReporter) -> Tensor:
        scores = self._scores([[part]], 1, reporter)
        self._done += 1
        return scores

    def _max_rows(self, start: str | None = None) -> int:
        """Return how many rows fit in memory from the layer `start` on: four outputs at once."""
        names = list(self._trace.calls)
        sizes = [self._trace.nbytes[name] // self._trace.calls[name] for name in names]
        largest = max(sizes[names.index(start) if start else 0 :])
        return max(1, min(_MAX_ROWS, _MAX_BATCH_BYTES // max(1, 4 * largest)))

    def _scores(
        self, changed: Sequence[Sequence[int]], images: int, reporter: ProgressReporter
    ) -> Tensor:
        """Score rows, float64 ``(N, classes)``, with the parts ``changed[i]`` of row i changed."""
        calls_done, count = 0, len(changed)

        def react(call: hooks.Call) -> object:
            nonlocal calls_done
            calls_done += 1
            share = count * min(1.0, calls_done / sum(self._calls.values()))
            reporter.within((self._done + share) / self._count)
            path, tensor = next(hooks.tensors_in(call.output), ((), None))
            if call.layer != self._layer.name or tensor is None:
                return None
            rows = self._as_rows(ActivationKey(call.layer, call.index, path), tensor, count)
            for row, parts in zip(rows, changed, strict=True):
                self.change(row, call, parts)
            output = rows.reshape(-1, *tensor.shape[1:])
            output = output if self._passes is self._model else lay_out(output)
            return map_tensors(call.output, lambda each: output if each is tensor else each)

        batch = self._images.expand(images, *self._images.shape[1:])
        if self._passes is not self._model:
            batch = lay_out(batch)
        growing = GrowingRows() if images < count else nullcontext()
        with (
            private_replica(self._passes) as replica,
            hooks.edit(replica, self._calls, react),
            growing,
        ):
            scores = class_scores(self._passes, replica, batch, reporter, count=count).values
        return scores.cpu().double()

    def _as_rows(self, address: ActivationKey, output: Tensor, count: int) -> Tensor:
        """Copy the layer's output to a row for each image; a single image's row is repeated."""
        if count == 1:
            return output.clone()[None]
        layout = self._trace.layouts.get(address, UNKNOWN)
        windows = prod(layout.windows) if layout.order == WINDOWS else 1
        unbatched = len(self._layer.output_shape) - (layout.order == TOKENS)
        if output.ndim == unbatched and layout.order != WINDOWS:  # the network took the batch off
            raise ValueError("there is no batch for more than one row")
        rows = output.reshape(-1, windows, *output.shape[1:])
        return rows.expand(count, *rows.shape[1:]).clone()


@dataclass(frozen=True, eq=False, slots=True)
class _HalfScores:
    """Scores with either half of the parts changed, ``(2, classes)``, from passes of their own."""

    halves: tuple[Sequence[int], Sequence[int]]
    scores: Tensor
    tolerance: float

    def agree(self, scores: Tensor) -> bool:
        """Return whether a batch gave the same scores, within rounding."""
        return agree_within(self.scores, scores, self.tolerance)


def work_behind(trace: LayerTrace, layer: str) -> float:
    """Return the multiply-adds of a layer or a block, and of all layers after it, in one pass."""
    order = {info.name: index for index, info in enumerate(trace.every)}
    after = [info for info in trace.layers if order[info.name] >= order[layer]]
    return sum(info.multiply_adds * info.calls for info in after)


@dataclass(frozen=True, eq=False, slots=True)
class ChannelEffects:
    """How a class's score changes when a channel of a layer is 0, channel by channel.

    Attributes:
        layer: whose channels they are.
        label: of the class.
        score: of the class with all channels.
        score_changes: score without the channel − `score`, float64 ``(C,)``: below zero where the
            channel speaks for the class.
        probability: of the class with all channels; None where the network has none.
        probability_changes: likewise, ``(C,)``.
        rounding: the largest change of a score that rounding alone may make.
        flips: how many channels change the likeliest class, each by itself.
        how: the passes were rounded, in words; empty of plain ones.
    """

    layer: str
    label: str
    score: float
    score_changes: NDArray[np.float64] = field(repr=False)
    probability: float | None
    probability_changes: NDArray[np.float64] | None = field(repr=False)
    rounding: float
    flips: int
    how: str = ""

    def chart(self, channels: Sequence[int]) -> Chart:
        """Return by how much the score falls without each of these channels, in that order."""
        return Chart(
            say("What each channel alone adds to the score of {label}", label=self.label),
            tuple(map(str, channels)),
            {say("fall of the score"): -self.score_changes[channels]},
            unit=say("fall of the score without it"),
        )

    def figure(self, top: int = 16) -> "Figure":
        """Draw by how much the score falls without each of the `top` channels that move it most."""
        listed = np.argsort(-np.abs(self.score_changes), kind="stable")[:top]
        return titled_figure(self.chart(listed.tolist()))


class ChannelAblation(PartChanges):
    """Runs passes with channels of one layer ablated, each by itself."""

    def __init__(self, model: Model, model_input: ModelInput, layer: LayerInfo) -> None:
        super().__init__(model, model_input, layer, layer.output_shape[0])
        self._axis = -len(layer.output_shape) if layer.kernel_size else -1  # of the channels

    def change(self, row: Tensor, _call: hooks.Call, parts: Sequence[int]) -> None:
        """Write 0 into these channels."""
        row.movedim(self._axis, 0)[list(parts)] = 0


def channel_effects(
    model: Model, model_input: ModelInput, layers: Sequence[str], progress: Progress = ignore
) -> dict[str, Tensor]:
    """Measure how much the class scores change without each channel, by layer.

    ``‖scores(channel c at 0) − scores‖₂``, float64 ``(C,)`` on the CPU. The channel is ablated at
    the layer's own output, before any batch norm.

    `layers` are conv layers, or linear layers that put out maps.

    Raises:
        ModelError: it would take more than 10¹³ multiply-adds, or the network can't go on without
            a channel or puts out no class scores.
    """
    trace = input_trace(model, model_input)
    infos = [info for info in trace.layers if info.name in set(layers)]
    work = sum(info.output_shape[0] * work_behind(trace, info.name) for info in infos)
    channels = sum(info.output_shape[0] for info in infos)
    if work > MAX_WORK:
        raise ModelError(
            say(
                "To switch {channels:,} channels of {model} off one by one takes {multiply_adds} "
                "multiply-adds, more than {limit}. Choose one layer alone, a smaller "
                "input, or another method.",
                channels=channels,
                model=model.title,
                multiply_adds=number(work),
                limit=number(MAX_WORK),
            )
        )
    effects, done, reporter = {}, 0, rising(progress)
    with private_replica(model) as replica:
        before = class_scores(model, replica, model_input.tensor).values[0].cpu().double()
    for info in infos:
        count = info.output_shape[0]
        within = ProgressReporter(progress_of_part(reporter, done, count, channels))
        after = ChannelAblation(model, model_input, info).scores_with_each(before, within)
        effects[info.name] = (after - before).norm(dim=1)
        done += count
    return effects
