"""Edits of a layer's output as values: zero, scale, add, replace and keep.

`hookviz.edit` and `hookviz.edited` take them, by layer: ``{"layer3": hookviz.edits.scale(2)}``. Of
a layer that puts out several tensors the first one is edited; the others stay. An edit goes for
every call of its layer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.layer_edit import Edit, follow_edit
from hookviz.types import Activation

Cell = int | tuple[int, ...]
"""Place of a cell: row and column of a map, a token's number, and so on, from 0."""


def zero(*, channels: Iterable[int] | None = None, cells: Iterable[Cell] | None = None) -> Edit:
    """Return the edit that puts 0 in place of a layer's output; ``zero`` itself means ``zero()``.

    Args:
        channels: of these alone, by number; along the axis that counts channels, the second of
            maps ``(N, C, H, W)`` and the last of tokens ``(N, T, C)``.
        cells: at these alone: ``(row, column)`` of maps, or a token's number.

    Raises:
        SettingError: `channels` or `cells` are no numbers from 0.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    >>> with hookviz.edit(network, {"0": hookviz.edits.zero(channels=[1, 2])}):
    ...     network(torch.ones(1, 3, 3, 3)).flatten() == 0  # (N, C, H, W)
    tensor([False,  True,  True, False])
    """
    return Edit("zero", channels=_channels(channels), cells=_cells(cells))


def scale(
    factor: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
) -> Edit:
    """Return the edit that multiplies a layer's output.

    Args:
        factor: a number, a number a channel, or a tensor of the output's shape.
        channels: as of `zero`.
        cells: as of `zero`.

    Raises:
        SettingError: `factor` is no numbers; or as `zero`.

    >>> network = torch.nn.Sequential(torch.nn.Identity())
    >>> with hookviz.edit(network, {"0": hookviz.edits.scale(2)}):
    ...     network(torch.ones(1, 3))  # (N, C)
    tensor([[2., 2., 2.]])
    """
    return Edit("scale", _numbers(factor, "factor"), _channels(channels), _cells(cells))


def add(
    vector: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
) -> Edit:
    """Return the edit that adds to a layer's output, such as a steering vector.

    Args:
        vector: a number, a number a channel ``(C,)``, or a tensor of the output's shape, with or
            without its batch. Gradients flow to it where it asks for them.
        channels: as of `zero`.
        cells: as of `zero`.

    Raises:
        SettingError: `vector` is no numbers; or as `zero`.

    >>> network = torch.nn.Sequential(torch.nn.Identity())
    >>> with hookviz.edit(network, {"0": hookviz.edits.add(torch.tensor([0.0, 1.0]))}):
    ...     network(torch.ones(1, 2))  # (N, C)
    tensor([[1., 2.]])
    """
    return Edit("add", _numbers(vector, "vector"), _channels(channels), _cells(cells))


def replace(
    activation: Any,
    *,
    channels: Iterable[int] | None = None,
    cells: Iterable[Cell] | None = None,
) -> Edit:
    """Return the edit that puts something else in place of a layer's output.

    Args:
        activation: what a capture has of the layer, ``cap["layer3"]``; or what `add` takes.
        channels: as of `zero`: the activation's own channels of these numbers are put there.
        cells: as of `zero`: the activation's own cells.

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
    return Edit("replace", _numbers(values, "activation"), _channels(channels), _cells(cells))


def keep(channels: Iterable[int]) -> Edit:
    """Return the edit that puts 0 in place of all channels but these.

    Raises:
        SettingError: `channels` are no numbers from 0.

    >>> network = torch.nn.Sequential(torch.nn.Identity())
    >>> with hookviz.edit(network, {"0": hookviz.edits.keep([1])}):
    ...     network(torch.ones(1, 3))  # (N, C)
    tensor([[0., 1., 0.]])
    """
    return Edit("zero", channels=_channels(channels), others=True)


def as_change(
    network: nn.Module, layers: Sequence[str], change: Any
) -> tuple[Sequence[str], Callable[[hooks.Call], Any]]:
    """Return the layers to hook and what to do there, for an `Edit` or a function of a `Call`.

    Raises:
        SettingError: `change` is neither.
    """
    edit = zero() if change is zero else change
    if isinstance(edit, Edit):
        return follow_edit(network, layers, edit)
    if not callable(edit) or edit in (scale, add, replace, keep):
        raise SettingError(
            f"{shorten(getattr(edit, '__name__', repr(edit)))} is no edit. A function of a call is "
            "one, or a value: hookviz.edits.zero, scale(2), add(vector), replace(activation), "
            "keep([3])."
        )
    return layers, edit


@contextmanager
def edited_layers(network: nn.Module, edits: Iterable[tuple[Sequence[str], Any]]) -> Iterator[None]:
    """Edit the named layers in the block, each row after those before it."""
    with ExitStack() as stack:
        for layers, change in edits:
            hooked, react = as_change(network, layers, change)
            stack.enter_context(hooks.edit(network, hooked, react))
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


def _channels(channels: Any) -> tuple[int, ...] | None:
    numbers = None if channels is None else _listed(channels)
    if numbers is not None and not all(map(_is_place, numbers)):
        raise SettingError(
            f"channels={shorten(repr(channels))} are no numbers of channels. A list of them is "
            "wanted, from 0: channels=[3, 7]."
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
