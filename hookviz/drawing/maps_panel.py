"""Declare the panel of maps of several images side by side, each beside its picture."""

from dataclasses import dataclass, field

import numpy as np

from hookviz import markup
from hookviz.drawing import notebook
from hookviz.drawing.panels import Panel, PanelFile
from hookviz.drawing.pictures import encode_png, square
from hookviz.language.saying import joined, say
from hookviz.types import Model, Pixels


@dataclass(frozen=True, eq=False, slots=True)
class ImageMap:
    """A map beside the picture that it is of.

    Attributes:
        name: what the image is called.
        says: a few words on the map.
        picture: what the network saw, RGB uint8, ``(H, W, 3)``.
        colours: the map, RGB uint8, ``(rows, columns, 3)``: a pixel for every cell.
        digest: of the image, by which it is known again; empty where it was no image.
    """

    name: str
    says: str
    picture: Pixels = field(repr=False)
    colours: Pixels = field(repr=False)
    digest: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class MapsPanel(Panel):
    """A row of maps of several images, in the same colours, each beside its picture.

    Attributes:
        layer, channel: which channel's maps they are; an empty `layer` where they are of none.
    """

    title: str
    maps: tuple[ImageMap, ...]
    caption: str = ""
    layer: str = ""
    channel: int = 0

    def sheet(self, side: int = 128, columns: int = 4) -> Pixels:
        """Lay all of them out row by row, each `side` pixels high and twice as wide."""
        gap = np.full((side, side // 16, 3), 128, np.uint8)
        tiles = [
            np.hstack([square(each.picture, side), square(each.colours, side), gap])
            for each in self.maps
        ]
        tiles += [np.full_like(tiles[0], 128)] * (-len(tiles) % min(columns, len(tiles)))
        width = min(columns, len(tiles))
        rows = [np.hstack(tiles[start : start + width]) for start in range(0, len(tiles), width)]
        sheet: Pixels = np.vstack(
            [np.pad(row, ((0, 8), (0, 0), (0, 0)), constant_values=128) for row in rows]
        )
        return sheet

    @property
    def alt(self) -> str:
        """Text for those who do not see the maps."""
        named = "; ".join(f"{each.name}: {each.says}" for each in self.maps)
        return say("{title}, each beside its picture. {maps}.", title=self.title, maps=named)

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that pictures and maps take."""
        return sum(each.picture.nbytes + each.colours.nbytes for each in self.maps)

    def _html(self) -> str:
        names = joined(f"{each.name} ({each.says})" for each in self.maps)
        caption = f"Row by row: {names}. {self.caption}"
        picture = markup.image(encode_png(self.sheet()), self.alt)
        return notebook.titled(self.title, picture, caption)

    def _text(self) -> str:
        return f"[{self.title}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", encode_png(self.sheet()))
