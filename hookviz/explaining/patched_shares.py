"""Hold how much of a target's difference each part of a network brings back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz import markup
from hookviz.drawing.figures import figure_file
from hookviz.drawing.patching_page import heads_figure, patching_figure
from hookviz.language.saying import say
from hookviz.wording import number

if TYPE_CHECKING:  # drawing alone knows matplotlib
    from matplotlib.figure import Figure

Shares = NDArray[np.float64]
_MOST_ROWS = 30  # of a notebook's table


class PatchRow(NamedTuple):
    """One part of one layer: its share, and the estimate by the gradient.

    Attributes:
        layer: the layer's name.
        part: ``(channel,)``, ``(head,)``, a cell as ``(row, column)``, or ``()`` for the layer.
        share: of the target's difference, that the part brings back.
        direct: the same, as the gradient estimates it.
    """

    layer: str
    part: tuple[int, ...]
    share: float
    direct: float


@dataclass(frozen=True, eq=False)
class Patching:
    """Shares of a target's difference between two images, that parts of a network bring back.

    1 is the target as it is for the clean image, 0 as it is for the corrupted one; a part can bring
    back more than all of it, or less than nothing.

    Attributes:
        model: the network's title.
        target: what was measured, in words.
        by: ``"layer"``, ``"channel"``, ``"cell"`` or ``"head"``.
        clean: the target for the clean image.
        corrupted: the target for the corrupted image.
        shares: by layer, in order of execution; float64 ``()`` of layers, ``(C,)`` of channels,
            ``(H, W)`` of cells, ``(heads,)`` of heads.
        direct: the same by the gradient, in one pass for all parts (attribution patching); NaN
            where nothing can be gone back through.
        note: why numbers of `direct` are NaN; empty where none is.
    """

    model: str
    target: str
    by: str
    clean: float
    corrupted: float
    shares: Mapping[str, Shares] = field(repr=False)
    direct: Mapping[str, Shares] = field(repr=False)
    note: str = ""

    def table(self, top: int | None = None) -> tuple[PatchRow, ...]:
        """Return a row for each part, in order of execution; or the `top` of the largest share."""
        rows = tuple(self._rows())
        return rows if top is None else tuple(sorted(rows, key=lambda row: -row.share)[:top])

    def _rows(self) -> Iterator[PatchRow]:
        for layer, shares in self.shares.items():
            for part in np.ndindex(shares.shape):
                yield PatchRow(layer, part, float(shares[part]), float(self.direct[layer][part]))

    def figure(self, *, title: str | None = None) -> "Figure":
        """Draw the shares: bars of layers or channels, a map of cells or of all heads."""
        own = say(
            "{model}: {target}, from {corrupted} to {clean}",
            target=self.target,
            model=self.model,
            corrupted=number(self.corrupted),
            clean=number(self.clean),
        )
        heading = own if title is None else title
        if self.by == "head":
            return heads_figure(self.shares, title=heading)
        return patching_figure(self.shares, self.direct, title=heading)

    def figure_bytes(self, format: str = "png", dpi: int = 150) -> bytes:  # noqa: A002 - as savefig
        """Return the `figure` as a file: ``"png"``, ``"pdf"`` or ``"svg"``.

        Only one thread draws at a time.

        Raises:
            SettingError: `format` is none of these.
        """
        return figure_file(self.figure, format, dpi=dpi)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the picture, and the parts of the largest share."""
        html = markup.image(self.figure_bytes(dpi=80), say("Share that each part brings back"))
        rows = [
            (row.layer, ", ".join(map(str, row.part)), number(row.share), number(row.direct))
            for row in self.table(_MOST_ROWS)
        ]
        head = (say("layer"), say("part"), say("share"), say("by gradient"))
        table = markup.table(head, rows)
        return html + markup.details(say("The largest shares"), table, is_open=False)
