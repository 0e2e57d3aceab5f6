"""Decide what part of an input a patch shows: what its cell sees, or the cell's own place.

Behind attention every cell sees all of the image, or large windows of it, so that the patches of
all cells would be alike.
"""

import threading
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas.channel_table import ChannelTable, LayerChannels
from hookviz.errors import HookVizError
from hookviz.explaining.receptive_fields.receptive_field import Fields, receptive_fields
from hookviz.types import Model


class PatchFields:
    """Parts of inputs that the patches of an atlas show, for any thread to ask."""

    def __init__(self, model: Model, table: ChannelTable) -> None:
        """Compute nothing yet."""
        self._model, self._table = model, table
        self._fields: dict[tuple[int, ...], Fields] = {}
        self._lock = threading.Lock()  # no two threads work the same fields out

    @cached_property
    def of_cells(self) -> frozenset[str]:
        """Addresses of the layers whose patches are the cells' own places.

        Those behind attention, and those of tokens or windows whose fields are not known.
        """
        fields = self._fields_of(self._table.input_shape)

        def is_of_cells(layer: LayerChannels) -> bool:
            seen = fields.get(layer.address)
            return layer.layout.last if seen is None else bool(seen.mixed)

        return frozenset(each.address for each in self._table.layers if is_of_cells(each))

    def boxes(
        self, layer: LayerChannels, cells: NDArray[np.int32], shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Return the parts of an input of `shape`, ``(C, H, W)``, that cells' patches show.

        Args:
            layer: of all the cells.
            cells: row and column of each, ``(M, 2)``.
            shape: of the input.

        Returns:
            Top, left, bottom, right in pixels of the input, ``(M, 4)``.
        """
        height, width = shape[-2:]
        seen = self._fields_of(shape).get(layer.address)
        rows, columns = layer.cells if seen is None else seen.cells
        boxes = np.empty((len(cells), 4))
        boxes[:] = 0, 0, height, width  # of a line, or a layer that zeros don't run
        is_there = (cells < (rows, columns)).all(axis=1)
        row, column = cells[is_there].T
        if layer.address in self.of_cells:
            down, across = height / rows, width / columns
            edges = row * down, column * across, (row + 1) * down, (column + 1) * across
            boxes[is_there] = np.stack(edges, 1)
        elif seen is not None:
            boxes[is_there] = np.stack([edge[row, column] for edge in seen.boxes], 1)
        return boxes

    def _fields_of(self, shape: tuple[int, ...]) -> Fields:
        with self._lock:
            if shape not in self._fields:
                try:
                    self._fields[shape] = receptive_fields(self._model, shape)
                except HookVizError:  # zeros don't go through, though images do
                    self._fields[shape] = {}
            return self._fields[shape]
