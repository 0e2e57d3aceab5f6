"""Define what pictures are made for: a number of each one's pass that is to rise or fall."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.wanted_layers import meta_output_error
from hookviz.errors import ModelError, SettingError
from hookviz.explaining.scores.scoring import scores_in
from hookviz.language.saying import mark, say, say_count
from hookviz.models.wrapping import as_model
from hookviz.synthesis.composing import Composable, sum_in_words
from hookviz.types import UNKNOWN, ActivationKey, Model
from hookviz.wording import times


@dataclass(frozen=True, slots=True)
class Objective(Composable):
    """Unit, or several together, to maximise in activation maximisation (Erhan et al., 2009).

    Sums, differences and multiples of objectives are one, of several layers too, see
    `ObjectiveSum`; any other function of layers' outputs is a `FunctionObjective`.

    Attributes:
        layer: whose channels; None for the classes, whose scores before the softmax count.
        weights: channels or classes with what each counts; none for all of the layer, whose mean
            square counts then, as in DeepDream (Mordvintsev et al., 2015).
        cell: one row and column of the map, of which each channel has its mean otherwise.
        rises: look for what excites it; else for what silences it.

    >>> from hookviz.synthesis.goals import Objective
    >>> Objective.of_channel("stage3.second.conv", 5)
    Objective(layer='stage3.second.conv', weights=((5, 1.0),), cell=None, rises=True)
    """

    layer: str | None = None
    weights: tuple[tuple[int, float], ...] = ()
    cell: tuple[int, int] | None = None
    rises: bool = True

    @property
    def layers(self) -> tuple[str | None]:
        """The layer, as every goal has several."""
        return (self.layer,)

    @classmethod
    def of_channel(
        cls, layer: str, channel: int, cell: tuple[int, int] | None = None
    ) -> "Objective":
        """Maximise the mean of a channel's map, or one cell of it."""
        return cls(layer, ((channel, 1.0),), cell)

    @classmethod
    def of_class(cls, target: int) -> "Objective":
        """Maximise a class's score."""
        return cls(None, ((target, 1.0),))

    @classmethod
    def of_direction(
        cls,
        layer: str | None,
        weights: Mapping[int, float],
        cell: tuple[int, int] | None = None,
    ) -> "Objective":
        """Maximise several channels, or without a layer several classes, by what each counts."""
        return cls(layer, tuple(sorted(weights.items())), cell)

    def value(self, *outputs: Tensor) -> Tensor:
        """Return the number, (), of one picture's output, ``(C, rows, columns)``."""
        (output,) = outputs
        if not self.weights:
            return output.square().mean()
        return weighted_sum(output, self.weights, self.cell)

    def unit(self, *outputs: Tensor) -> Tensor:
        """Return each picture's spread, so that a penalty means the same in every layer."""
        (output,) = outputs
        return spread(output)

    def check(self, model: Model | nn.Module, *shapes: Sequence[int]) -> None:
        """Check that the layer's output has all channels, classes and cells that are asked for.

        Args:
            model: for the words.
            shapes: ``(C, rows, columns)`` of the output.

        Raises:
            SettingError: it lacks that channel, class or cell, or all weights are 0.
        """
        (shape,) = shapes
        what = say("layer {layer!r}", layer=self.layer) if self.layer else as_model(model).title
        kind = mark("channel") if self.layer else mark("class")
        indices = [(kind, channel, shape[0]) for channel, _ in self.weights]
        if self.cell is not None:
            indices += [
                (mark("row"), self.cell[0], shape[1]),
                (mark("column"), self.cell[1], shape[2]),
            ]
        for axis, index, count in indices:
            if not 0 <= index < count:
                raise SettingError(
                    say(
                        "There is no {axis} {index} in {place}: it has {count:,}, 0 to {last}.",
                        axis=say(axis),
                        index=index,
                        place=what,
                        count=count,
                        last=count - 1,
                    )
                )
        if self.weights and not any(weight for _, weight in self.weights):
            raise SettingError(
                say("Every {kind} counts 0, so there is nothing to look for.", kind=say(kind))
            )

    def says(self, model: Model | nn.Module) -> str:
        """Name the goal within a sentence."""
        if self.layer is None or not self.weights:
            return self.says_alone(model)
        parts, where = self._parts(as_model(model)), self._where()
        return say("{parts} of {layer}{cell}", parts=parts, layer=self.layer, cell=where)

    def says_alone(self, model: Model | nn.Module) -> str:
        """Name the goal where the layer is named elsewhere."""
        if not self.weights:
            return say("all of {layer}", layer=self.layer)
        parts = self._parts(as_model(model))
        if self.layer is None:
            return say("the score of {parts}", parts=parts)
        return f"{parts}{self._where()}"

    def _parts(self, model: Model) -> str:
        """List the channels or classes with their weights."""
        return sum_in_words((weight, self._name(model, index)) for index, weight in self.weights)

    def _where(self) -> str:
        if self.cell is None:
            return ""
        return say(", row {row}, column {column}", row=self.cell[0], column=self.cell[1])

    def _name(self, model: Model, index: int) -> str:
        if self.layer is not None:
            return say("channel {index}", index=index)
        return model.label(index)


def spread(outputs: Tensor) -> Tensor:
    """Return the standard deviation of each picture's outputs, or 1 where it is 0, ``(N,)``."""
    spreads = outputs.flatten(1).std(1, correction=0)
    return torch.where(spreads > 0, spreads, torch.ones_like(spreads))


def weighted_sum(
    output: Tensor, weights: Sequence[tuple[int, float]], cell: tuple[int, int] | None
) -> Tensor:
    """Return the channels' means, or one cell of each, times their weights and added up, ()."""
    maps = output if cell is None else output[:, cell[0], cell[1]]
    return torch.stack([weight * maps[channel].mean() for channel, weight in weights]).sum()


@dataclass(frozen=True, eq=False)
class Match:
    """Distance of a layer's output from the one that an image gave.

    The distance is ``|Φ(x) − Φ₀|² / |Φ₀|²`` (Mahendran and Vedaldi, 2015, equation 2), 0 for the
    same and 1 for nothing at all.

    Attributes:
        layer: whose output.
        activation: Φ₀, ``(C, rows, columns)``.
        rises: no.
    """

    layer: str
    activation: Tensor = field(repr=False)
    rises: bool = False

    @property
    def layers(self) -> tuple[str]:
        """The layer, as every goal has several."""
        return (self.layer,)

    def value(self, *outputs: Tensor) -> Tensor:
        """Return the distance, (), of one picture's output, ``(C, rows, columns)``."""
        (output,) = outputs
        wanted = self.activation.to(output.device, output.dtype)
        return (output - wanted).square().sum() / wanted.square().sum().clamp(min=1e-12)

    def unit(self, *outputs: Tensor) -> Tensor:
        """Return 1: a distance has no unit."""
        (output,) = outputs
        return torch.ones(len(output), device=output.device, dtype=output.dtype)

    def says(self, model: Model) -> str:  # noqa: ARG002 - as every goal's
        """Name the goal within a sentence."""
        return say("the distance at {layer}", layer=self.layer)


def by_picture(
    model: Model, layer: str | None, output: Any, count: int, shape: tuple[int, ...]
) -> Tensor:
    """Bring a layer's output, or the class scores, to ``(count, C, rows, columns)``.

    `output` is that of the first call of `layer`, or the class scores for None; `shape` is the
    ``(C, H, W)`` of each picture.

    Raises:
        ModelError: it is something else.
    """
    if layer is None:
        return scores_in(model, output, count).values[:, :, None, None]
    if isinstance(output, Tensor) and output.is_meta:
        raise meta_output_error(model, layer)
    if isinstance(output, Tensor) and output.is_floating_point():
        layout = layer_trace(model, shape).layouts.get(ActivationKey(layer), UNKNOWN)
        if layout.last:
            output = layout.batch_maps(output)
        if output.ndim == 3 and count == 1:  # a convolution may put out maps without a batch
            output = output[None]
        maps: Tensor = output[:, :, None, None] if output.ndim == 2 else output
        if maps.ndim == 4 and len(maps) == count and maps.numel():
            return maps
    kind = times(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if isinstance(output, Tensor) and output.is_complex():
        kind = say("complex numbers")
    raise ModelError(
        say_count(
            "Layer {layer!r} of {model} puts out {kind} for {count} picture, and no maps for each.",
            "Layer {layer!r} of {model} puts out {kind} for {count} pictures, and no "
            "maps for each.",
            count,
            layer=layer,
            model=model.title,
            kind=kind,
        )
    )
