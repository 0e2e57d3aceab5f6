"""Change a layer's output as an edit says: zero, scale, add or replace, at channels and cells.

1. Find the axis that counts channels, where an edit asks about it: see `ChannelAxes`.
2. Bring the numbers of the edit to the output's shape, type and device.
3. Compute the edited tensor, and take it where channels and cells are chosen, else the output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import SettingError
from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.modules import named_modules
from hookviz.hooking.nested_outputs import map_tensors
from hookviz.wording import times

_KINDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "zero": lambda output, _amount: torch.zeros_like(output),
    "scale": lambda output, amount: output * amount,
    "add": lambda output, amount: output + amount,
    "replace": lambda output, amount: amount.expand_as(output),
}


@dataclass(frozen=True, eq=False, slots=True)
class Edit:
    """Edit of a layer's output; made by `zero`, `scale`, `add`, `replace` and `keep`.

    Attributes:
        kind: ``"zero"``, ``"scale"``, ``"add"`` or ``"replace"``.
        amount: the factor, or what is added or put in place; of none or all of the output's axes,
            or one number a channel.
        channels: which are edited; None for all.
        cells: which are edited; None for all.
        others: whether all channels, or heads, but these are edited.
        heads: of attention within the layer, edited before they are mixed; None for the output.
    """

    kind: str
    amount: Tensor = field(default_factory=lambda: torch.tensor(0.0), repr=False)
    channels: tuple[int, ...] | None = None
    cells: tuple[tuple[int, ...], ...] | None = None
    others: bool = False
    heads: tuple[int, ...] | None = None

    @property
    def needs_channels(self) -> bool:
        """Whether it has to be known which axis of the output counts channels."""
        return self.amount.ndim == 1 or self.channels is not None or self.cells is not None

    def apply(self, output: Tensor, layer: str, axis: int | None) -> Tensor:
        """Return the edited tensor, of the shape and type of `output`; with its gradients.

        Args:
            output: what the layer puts out, ``(N, C, H, W)`` or of other axes.
            layer: its name, for messages.
            axis: which counts channels, or heads; None where nobody knows.

        Raises:
            SettingError: the edit's numbers don't fit, or there is no such channel or cell.
        """
        if self.needs_channels and axis is None:
            raise SettingError(
                f"{self.kind} at {layer!r}: which axis of its output, {times(output.shape)}, "
                "counts channels is not known. A function can do it: "
                f"{{{layer!r}: lambda call: call.output * 0}}."
            )
        amount = self._fitting(output, layer, axis)
        edited = _KINDS[self.kind](output, amount).to(output.dtype)
        if axis is None or (self.channels, self.cells, self.heads) == (None, None, None):
            return edited
        return torch.where(self._mask(output, layer, axis), edited, output)

    def _fitting(self, output: Tensor, layer: str, axis: int | None) -> Tensor:
        """Return the edit's numbers in a shape that broadcasts to the output's."""
        amount, shape = self.amount.to(output.device, output.dtype), tuple(output.shape)
        given = tuple(amount.shape)
        if axis is not None and given == (shape[axis],):
            return _along(amount, axis, output.ndim)
        if given in {(), shape, shape[1:], (1, *shape[1:])}:
            return amount
        each = "" if axis is None else f", {shape[axis]} numbers (one a {self._part})"
        raise SettingError(
            f"{self.kind} at {layer!r}: {times(given)} numbers are given for an output of "
            f"{times(shape)}. These fit: one number{each} or a tensor of {times(shape[1:])}."
        )

    @property
    def _part(self) -> str:
        return "channel" if self.heads is None else "head"

    def _mask(self, output: Tensor, layer: str, axis: int) -> Tensor:
        """Return where the edit holds, of a shape that broadcasts to the output's."""
        shape, mask = output.shape, torch.tensor(data=True)
        numbers = self.channels if self.heads is None else self.heads
        if numbers is not None:
            for each in numbers:
                _check(
                    "channel" if self.heads is None else "head", (each,), shape[axis:][:1], layer
                )
            chosen = torch.full((shape[axis],), fill_value=self.others)
            chosen[list(numbers)] = not self.others
            mask = _along(chosen, axis, output.ndim)
        if self.cells is not None:
            axes = [each for each in range(output.ndim) if each not in (0, axis)]
            sides = [shape[each] for each in axes]
            spots = torch.zeros(sides, dtype=torch.bool)
            for cell in self.cells:
                _check("cell", cell, sides, layer)
                spots[cell] = True
            mask = mask & spots.reshape(
                [shape[each] if each in axes else 1 for each in range(output.ndim)]
            )
        return mask.to(output.device)


def follow_edit(
    network: nn.Module, layers: Sequence[str], edit: Edit
) -> tuple[Sequence[str], Callable[[hooks.Call], Any]]:
    """Return the layers to hook and what to do there, so that `layers` are edited.

    An edit that asks about channels follows every layer, by which their axis is found.
    """
    wanted, axes = frozenset(layers), ChannelAxes()
    modules = dict(named_modules(network, remove_duplicate=False))

    def axis_of(call: hooks.Call, path: tuple[str, ...], output: Tensor) -> int | None:
        if not edit.needs_channels:
            return None
        return axes.axis(modules[call.layer], call, path, output)

    def react(call: hooks.Call) -> Any:
        path, output = next(hooks.tensors_in(call.output), ((), None))
        if output is None:
            return _no_tensor(call, edit) if call.layer in wanted else None
        axis = axis_of(call, path, output)
        if call.layer not in wanted:
            return None
        edited = edit.apply(output, call.layer, axis)
        axis_of(call, path, edited)  # the tensor that the network goes on with
        return map_tensors(call.output, lambda each: edited if each is output else each)

    return tuple(modules) if edit.needs_channels else layers, react


def _no_tensor(call: hooks.Call, edit: Edit) -> None:
    """Refuse an output without a tensor; a call that failed has none either."""
    if call.output is not None:
        raise SettingError(
            f"{edit.kind} at {call.layer!r}: it puts out a {type(call.output).__name__} without "
            "any tensor. A function of the call can change it."
        )


def _along(values: Tensor, axis: int, dimensions: int) -> Tensor:
    return values.reshape([-1 if each == axis else 1 for each in range(dimensions)])


def _check(what: str, place: tuple[int, ...], sides: Sequence[int], layer: str) -> None:
    """Refuse a channel or a cell that a layer does not have."""
    if len(place) != len(sides) or any(at >= side for at, side in zip(place, sides, strict=True)):
        first, last = (0,) * len(sides), tuple(side - 1 for side in sides)
        at, begin, end = (each[0] if len(each) == 1 else each for each in (place, first, last))
        raise SettingError(
            f"There is no {what} {at} in layer {layer!r}: they go from {begin} to {end}."
        )
