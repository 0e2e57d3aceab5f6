"""Show the strongest channels of many layers, one at a time, with a slider through the depth.

All of it is in the browser by then, so that maps and what a cell sees follow the slider at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from hookviz.language.saying import say
from hookviz.ui.components.files import show
from hookviz.ui.state import Cell


@dataclass(frozen=True, eq=False, slots=True)
class ScrubLevel:
    """One layer, as the browser draws it.

    Attributes:
        layer: what it is called.
        sees: what a cell of it sees, in words.
        size: its channels and cells, in words.
        channels: those shown, the strongest first.
        rows, columns: cells of a map.
        best: the strongest cell of each channel shown.
        edges: top and bottom of what a row of cells sees, left and right of a column of them, as
            shares of the input; empty where that is not known.
        strip: a JPEG as a URL: the maps side by side in colours, and below as bright as they are
            high.
    """

    layer: str
    sees: str
    size: str
    channels: list[int]
    rows: int
    columns: int
    best: list[list[int]]
    edges: list[list[float]]
    strip: str = field(repr=False)


def depth_scrub(
    levels: Sequence[ScrubLevel],
    photograph: str,
    chosen: tuple[int, int, Cell],
    on_pick: Callable[[int, int, Cell], None],
    *,
    key: str,
) -> None:
    """Show the layers.

    Args:
        levels: in order of execution.
        photograph: what the network gets, as a URL.
        chosen: the level shown, the place of a channel among those shown, and a cell of it.
        on_pick: gets the same when a person has picked others.
        key: of the component in Streamlit's state.
    """

    def take(sent: object) -> None:
        match sent:
            case [int(at), int(tile), int(row), int(column)] if 0 <= at < len(levels):
                level = levels[at]
                if 0 <= tile < len(level.channels):
                    cell = min(max(row, 0), level.rows - 1), min(max(column, 0), level.columns - 1)
                    on_pick(at, tile, cell)

    at, tile, cell = chosen
    data = {
        "levels": [asdict(level) for level in levels],
        "photograph": photograph,
        "chosen": [at, tile, *cell],
        "words": {
            "label": say("The strongest channels, layer by layer"),
            "slider": say("Depth"),
            "layer": say("Layer {number} of {count}: {layer}"),
            "channel": say("Channel {channel}"),
            "first": say("first layer"),
            "last": say("last layer"),
            "sees": say("A cell sees {size}"),
            "alt": say(
                "Bright on the image is where channel {channel} answers; framed is what "
                "the cell in row {row}, column {column} sees."
            ),
        },
    }
    show("depth_scrub", key, data, picked=take)
