"""Prove how an output lies by moving: change a cell of known maps, and see what moves behind it.

Three images that are alike go through the network. Where it has put out maps whose rows and columns
are known, they are made alike once more, and one cell of the second and another of the third are
changed. Layers behind lie as it is thought to, where just what stands for those cells has moved in
each of them, up to the first that mixes cells: that moves others too, and tells nothing.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import torch
from torch import Tensor

from hookviz.errors import ModelError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.types import Layout, Model

Place = tuple[str, int]
"""A layer and which of its calls."""

_MOVED = 1e-4  # of the largest value: more than rounding differs within a batch
_IMAGES = 3  # one as it is, two with a cell that is changed
_ENOUGH = 6  # calls behind known maps at which a layout has held


def proven(
    model: Model,
    shape: tuple[int, ...],
    known: Mapping[Place, Layout],
    guesses: Mapping[Place, Layout],
) -> frozenset[Layout]:
    """Return the layouts that one pass with data proves, which ends where none is open any more.

    Args:
        model: whose network runs.
        shape: ``(C, H, W)`` of its input.
        known: calls that put out maps of one image, in order of return, with their layouts.
        guesses: what calls behind those may put out; of ``"channels last"`` with the `grid`, too.
    """
    if not guesses:
        return frozenset()
    trial = _Trial(known, guesses)
    names = {name for name, _ in (*known, *guesses)}
    draws = torch.Generator().manual_seed(0)
    images = torch.randn(1, *shape, generator=draws).expand(_IMAGES, *shape)
    with (
        suppress(ModelError),
        private_replica(model) as replica,
        hooks.edit(replica, names, trial.change),
    ):
        forward_pass(model, replica, images)
    return frozenset(trial.held)


class _Trial:
    """Layouts that are tried, and at how many calls each has held."""

    def __init__(self, known: Mapping[Place, Layout], guesses: Mapping[Place, Layout]) -> None:
        self.held = Counter[Layout]()
        self._known = known
        self._open = dict(guesses)
        self._cells: tuple[tuple[int, int], ...] = ()
        self._grid = (0, 0)  # of the maps that were changed last
        self._draws = torch.Generator().manual_seed(1)

    def change(self, call: hooks.Call) -> Tensor | None:
        """Look at what has moved, and change the cells of maps."""
        place = (call.layer, call.index)
        guess = self._open.pop(place, None)
        if guess is not None:
            self._look(guess, call.output)
        if not self._open:
            raise hooks.StopForward
        if place not in self._known or not isinstance(call.output, Tensor):
            return None
        return self._changed(call.output, self._known[place])

    def _look(self, guess: Layout, output: object) -> None:
        places = self._moved(guess, output)
        if places is None:
            is_settled = True  # cells are mixed from here on
        elif places == self._cells:
            self.held[guess] += 1
            is_settled = self.held[guess] == _ENOUGH
        else:
            del self.held[guess]
            is_settled = True  # as tokens in another order
        if is_settled:
            self._open = {place: other for place, other in self._open.items() if other != guess}

    def _changed(self, output: Tensor, layout: Layout) -> Tensor | None:
        """Return the output, alike for all images but for a cell of the second and the third."""
        if len(output) != _IMAGES or not output.is_floating_point():
            return None
        output = output[:1].repeat(_IMAGES, *(1,) * (output.ndim - 1))
        maps = layout.maps(output)
        rows, columns = self._grid = maps.shape[-2], maps.shape[-1]
        self._cells = (0, min(1, columns - 1)), (rows // 2, columns - 1)
        for number, cell in enumerate(self._cells, 1):
            noise = torch.randn(maps.shape[1], generator=self._draws).to(maps)
            maps[number, :, *cell] += noise * (1 + maps.abs().max())
        return output

    def _moved(self, layout: Layout, output: object) -> tuple[tuple[int, int] | None, ...] | None:
        """Return which cell of a layout has moved for each image; None where it is not one.

        Of a token that stands for no cell it is None.
        """
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return None
        if layout.grid != self._grid or len(output) != _IMAGES:
            return None
        if layout.of(tuple(output.shape[1:])) != layout:
            return None
        moved = (output - output[:1]).abs() > _MOVED * output.abs().max()
        vectors, cells = moved[1:].any(-1).flatten(1), layout.maps(moved)[1:].any(1)
        if not bool((vectors.sum(1) == 1).all()):
            return None
        found = ((int(row), int(column)) for _, row, column in cells.nonzero())
        places = dict(zip(cells.flatten(1).any(1).nonzero().flatten().tolist(), found, strict=True))
        return tuple(places.get(number) for number in range(len(cells)))
