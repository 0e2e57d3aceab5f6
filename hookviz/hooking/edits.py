"""Edits of a layer's output as values: zero, scale, add, replace and keep.

`hookviz.edit` and `hookviz.edited` take them, by layer: ``{"layer3": hookviz.edits.scale(2)}``. Of
a layer that puts out several tensors the first one is edited; the others stay. An edit goes for
every call of its layer.

With ``heads=`` an edit is of attention heads within the layer, ``{"encoder.1": zero(heads=[3])}``:
of what each makes of the values, ``(N, heads, queries, numbers)``, before the output projection.
Such an edit sees the passes of the thread that it was made in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.attention_heads import HeadOutputs
from hookviz.hooking.layer_edit import Edit, follow_edit
from hookviz.types import Activation, ActivationKey

Cell = int | tuple[int, ...]
"""Place of a cell: row and column of a map, a token's number, and so on, from 0."""


def zero(
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
    heads: Iterable[int] | None = None,
) -> Edit:
    """Return the edit that puts 0 in place of a layer's output; ``zero`` itself means ``zero()``.

    Args:
        channels: of these alone, by number; along the axis that counts channels, the second of
            maps ``(N, C, H, W)`` and the last of tokens ``(N, T, C)``.
        cells: at these alone: ``(row, column)`` of maps, or a token's number.
        heads: of these attention heads of the layer alone, by number.

    Raises:
        SettingError: `channels`, `cells` or `heads` are no numbers from 0, or `heads` are given
            with one of the others.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    >>> with hookviz.edit(network, {"0": hookviz.edits.zero(channels=[1, 2])}):
    ...     network(torch.ones(1, 3, 3, 3)).flatten() == 0  # (N, C, H, W)
    tensor([False,  True,  True, False])
    """
    return Edit("zero", **_places(channels, cells, heads))


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
    return Edit("scale", _numbers(factor, "factor"), **_places(channels, cells, heads))


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
    return Edit("add", _numbers(vector, "vector"), **_places(channels, cells, heads))


def replace(
    activation: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
    heads: Iterable[int] | None = None,
) -> Edit:
    """Return the edit that puts something else in place of a layer's output.

    Args:
        activation: what a capture has of the layer, ``cap["layer3"]``; or what `add` takes.
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
    values = activation.raw if isinstance(activation, Activation) else activation
    return Edit("replace", _numbers(values, "activation"), **_places(channels, cells, heads))


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
    return Edit("zero", others=True, **_places(channels, None, heads))


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
        hooked, react = follow_edit(network, layers, edit)
        return hooks.edit(network, hooked, react, always_call=always_call)

    def change_heads(at: ActivationKey, heads: Tensor) -> Tensor:
        return edit.apply(heads, at.layer, 1)

    return HeadOutputs(network, frozenset(layers), change_heads).watching()


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


def _places(channels: Any, cells: Any, heads: Any) -> dict[str, Any]:
    if heads is not None and not (channels is None and cells is None):
        raise SettingError("heads= is for whole heads: leave channels= and cells= out.")
    return {
        "channels": _listed_numbers("channels", channels),
        "cells": _cells(cells),
        "heads": _listed_numbers("heads", heads),
    }


def _listed_numbers(name: str, values: Any) -> tuple[int, ...] | None:
    numbers = None if values is None else _listed(values)
    if numbers is not None and not all(map(_is_place, numbers)):
        raise SettingError(
            f"{name}={shorten(repr(values))} are no numbers of {name}. A list of them is "
            f"wanted, from 0: {name}=[3, 7]."
        )
    return numbers


def _cells(cells: Any) -> tuple[tuple[int, ...], ...] | None:
    if cells is None:
        return None
    places = tuple(each if isinstance(each, tuple) else (each,) for each in _listed(cells))
    if not all(_is_place(number) for place in places for number in place):
        raise SettingError(
            f"cells={shorten(repr(cells))} are no places of cells. A list of them is wanted, "
            "from 0: cells=[(2, 5)] for row 2 and column 5 of maps, cells=[7] for a token."
        )
    return places


def _listed(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, Iterable) else (values,)


def _is_place(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
