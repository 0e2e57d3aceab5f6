"""Edits of a layer's output as values: zero, scale, add, replace and keep.

`hookviz.edit` and `hookviz.edited` take them, by layer: ``{"layer3": hookviz.edits.scale(2)}``. Of
a layer that puts out several tensors the first one is edited; the others stay. An edit goes for
every call of its layer:

1. Find the axis that counts channels, where an edit asks about it: see `ChannelAxes`.
2. Bring the numbers of the edit to the output's shape, type and device.
3. Compute the edited tensor, and take it where channels and cells are chosen, else the output.

With ``heads=`` an edit is of attention heads within the layer, ``{"encoder.1": zero(heads=[3])}``:
of each head's output, ``(N, heads, queries, numbers)``, before the output projection.
Such an edit sees the passes of the thread that it was made in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.attention_calls import HeadOutputs
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.hooks import map_tensors
from hookviz.hooking.modules import named_modules
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
            axis: which counts channels, or heads; None where unknown.

        Raises:
            SettingError: the edit's numbers don't fit, or the channel or cell does not exist.
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
        own = tuple(amount.shape)
        if axis is not None and own == (shape[axis],):
            return _along(amount, axis, output.ndim)
        if own in {(), shape, shape[1:], (1, *shape[1:])}:
            return amount
        each = "" if axis is None else f", {shape[axis]} numbers (one a {self._part})"
        raise SettingError(
            f"{self.kind} at {layer!r}: {times(own)} numbers are given for an output of "
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
                _check(self._part, (each,), shape[axis:][:1], layer)
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


def _follow_edit(
    network: nn.Module, layers: Sequence[str], edit: Edit
) -> tuple[Sequence[str], Callable[[hooks.Call], Any]]:
    """Return the layers to hook, and the hook that edits `layers`.

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


def _check(what: str, index: tuple[int, ...], sides: Sequence[int], layer: str) -> None:
    """Refuse a channel or a cell that a layer does not have."""
    if len(index) != len(sides) or any(at >= side for at, side in zip(index, sides, strict=True)):
        first, last = (0,) * len(sides), tuple(side - 1 for side in sides)
        at, begin, end = (each[0] if len(each) == 1 else each for each in (index, first, last))
        raise SettingError(
            f"There is no {what} {at} in layer {layer!r}: they go from {begin} to {end}."
        )


Cell = int | tuple[int, ...]
"""Index of a cell: row and column of a map, or a token's number, from 0."""


def zero(
    channels: Iterable[int] | None = None,
    *,
    cells: Iterable[Cell] | None = None,
    heads: Iterable[int] | None = None,
) -> Edit:
    """Return the edit that puts 0 in place of a layer's output; ``zero`` itself means ``zero()``.

    Args:
        channels: of these alone, by number; along the axis that counts channels, the second of
            maps ``(N, C, H, W)`` and the last of tokens ``(N, T, C)``.
        cells: at these alone: ``(row, column)`` of maps, or a token's number.
        heads: of these attention heads of the layer alone, by number. Of the layers that a pattern
            chooses, those that attend are edited.

    Raises:
        SettingError: `channels`, `cells` or `heads` are no numbers from 0, or `heads` are given
            with one of the others.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    >>> with hookviz.edit(network, {"0": hookviz.edits.zero([1, 2])}):
    ...     network(torch.ones(1, 3, 3, 3)).flatten() == 0  # (N, C, H, W)
    tensor([False,  True,  True, False])
    """
    return Edit("zero", **_selection(channels, cells, heads))


def scale(
    factor: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
    heads: Iterable[int] | None = None,
) -> Edit:
    """Return the edit that multiplies a layer's output.

    Args:
        factor: a number, a number a channel (or head), or a tensor of the output's shape.
        channels: as of `zero`.
        cells: as of `zero`.
        heads: as of `zero`.

    Raises:
        SettingError: `factor` is no numbers; or as `zero`.

    >>> network = torch.nn.Sequential(torch.nn.Identity())
    >>> with hookviz.edit(network, {"0": hookviz.edits.scale(2)}):
    ...     network(torch.ones(1, 3))  # (N, C)
    tensor([[2., 2., 2.]])
    """
    return Edit("scale", _numbers(factor, "factor"), **_selection(channels, cells, heads))


def add(
    vector: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
    heads: Iterable[int] | None = None,
) -> Edit:
    """Return the edit that adds to a layer's output, such as a steering vector.

    Args:
        vector: a number, a number a channel ``(C,)``, or a tensor of the output's shape, with or
            without its batch. Gradients flow to it where it asks for them.
        channels: as of `zero`.
        cells: as of `zero`.
        heads: as of `zero`.

    Raises:
        SettingError: `vector` is no numbers; or as `zero`.

    >>> network = torch.nn.Sequential(torch.nn.Identity())
    >>> with hookviz.edit(network, {"0": hookviz.edits.add(torch.tensor([0.0, 1.0]))}):
    ...     network(torch.ones(1, 2))  # (N, C)
    tensor([[1., 2.]])
    """
    return Edit("add", _numbers(vector, "vector"), **_selection(channels, cells, heads))


def replace(
    activation: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
    heads: Iterable[int] | None = None,
) -> Edit:
    """Return the edit that puts something else in place of a layer's output.

    Args:
        activation: what a capture of an image or a batch has of the layer, ``cap["layer3"]``; or
            what `add` takes.
        channels: as of `zero`: the activation's own channels of these numbers are put there.
        cells: as of `zero`: the activation's own cells.
        heads: as of `zero`: the numbers are then of what the heads put out.

    Raises:
        SettingError: `activation` is no numbers; or as `zero`.

    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
    >>> star = hookviz.edits.replace(cap["stage3.first.conv"])
    >>> with hookviz.edit(model.network, {"stage3.first.conv": star}):
    ...     scores = model.network(torch.zeros(1, 3, 128, 128))
    >>> model.categories[int(scores.argmax())]
    'star'
    """
    values = getattr(activation, "raw", activation)  # of a capture of one image or several
    return Edit("replace", _numbers(values, "activation"), **_selection(channels, cells, heads))


def keep(channels: Iterable[int] | None = None, *, heads: Iterable[int] | None = None) -> Edit:
    """Return the edit that puts 0 in place of all channels, or attention heads, but these.

    Raises:
        SettingError: they are no numbers from 0, or not one of the two is given.

    >>> network = torch.nn.Sequential(torch.nn.Identity())
    >>> with hookviz.edit(network, {"0": hookviz.edits.keep([1])}):
    ...     network(torch.ones(1, 3))  # (N, C)
    tensor([[0., 1., 0.]])
    """
    if channels is None and heads is None:
        raise SettingError("keep() keeps nothing: name channels or heads, such as keep([3]).")
    return Edit("zero", others=True, **_selection(channels, None, heads))


def as_edit(change: Any) -> Edit | Callable[[hooks.Call], Any]:
    """Return an edit as a value or a function of a `Call`; ``zero`` itself is ``zero()``.

    Raises:
        SettingError: `change` is neither.
    """
    edit: Edit | Callable[[hooks.Call], Any] = zero() if change is zero else change
    if isinstance(edit, Edit):
        return edit
    if not callable(edit) or edit in (scale, add, replace, keep):
        raise SettingError(
            f"{shorten(getattr(edit, '__name__', repr(edit)))} is no edit. A function of a call is "
            "one, or a value: hookviz.edits.zero, scale(2), add(vector), replace(activation), "
            "keep([3])."
        )
    return edit


def edited_layer(
    network: nn.Module, layers: Sequence[str], change: Any, *, always_call: bool = False
) -> AbstractContextManager[None]:
    """Edit the named layers in the block, as `hookviz.edit` does.

    Raises:
        SettingError: `change` is no edit.
    """
    edit = as_edit(change)
    if not isinstance(edit, Edit):
        return hooks.edit(network, layers, edit, always_call=always_call)
    if edit.heads is None:
        hooked, react = _follow_edit(network, layers, edit)
        return hooks.edit(network, hooked, react, always_call=always_call)
    apply = edit.apply
    return HeadOutputs(network, [layers], lambda at, heads: apply(heads, at.layer, 1)).watching()


@contextmanager
def edited_layers(network: nn.Module, edits: Iterable[tuple[Sequence[str], Any]]) -> Iterator[None]:
    """Edit the named layers in the block, each row after those before it."""
    with ExitStack() as stack:
        for layers, change in edits:
            stack.enter_context(edited_layer(network, layers, change))
        yield


def _numbers(values: Any, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    try:
        is_number = isinstance(values, int | float) and not isinstance(values, bool)
        return torch.as_tensor(values, dtype=torch.float64 if is_number else None)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SettingError(
            f"{name}={shorten(repr(values))} is no numbers. A number is, a tensor, an array, or "
            "what a capture has of a layer, capture(model, image)['layer3']."
        ) from error


def _selection(channels: Any, cells: Any, heads: Any) -> dict[str, Any]:
    if heads is not None and not (channels is None and cells is None):
        raise SettingError("heads= is for whole heads: leave channels= and cells= out.")
    return {
        "channels": _listed_numbers("channels", channels),
        "cells": _cells(cells),
        "heads": _listed_numbers("heads", heads),
    }


def _listed_numbers(name: str, values: Any) -> tuple[int, ...] | None:
    numbers = None if values is None else _listed(values)
    if numbers is not None and not all(map(_is_index, numbers)):
        raise SettingError(
            f"{name}={shorten(repr(values))} are no numbers of {name}. A list of them is "
            f"wanted, from 0: {name}=[3, 7]."
        )
    return numbers


def _cells(cells: Any) -> tuple[tuple[int, ...], ...] | None:
    if cells is None:
        return None
    indices = tuple(each if isinstance(each, tuple) else (each,) for each in _listed(cells))
    if not all(_is_index(number) for index in indices for number in index):
        raise SettingError(
            f"cells={shorten(repr(cells))} are no places of cells. A list of them is wanted, "
            "from 0: cells=[(2, 5)] for row 2 and column 5 of maps, cells=[7] for a token."
        )
    return indices


def _listed(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, Iterable) else (values,)


def _is_index(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
