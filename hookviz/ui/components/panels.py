"""Show the panels of a lens: pictures, grids, charts and tables side by side, maps and trees."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image

from hookviz.drawing.attention_panel import AttentionPanel
from hookviz.drawing.charts import COLOURS, axis_of
from hookviz.drawing.colormaps import ABOVE, BELOW
from hookviz.drawing.grid import Grid, tile_facts
from hookviz.drawing.layout import Geometry
from hookviz.drawing.panels import (
    ChartPanel,
    GridPanel,
    ImagePanel,
    MapsPanel,
    OverlayPanel,
    Panel,
    TablePanel,
    TreePanel,
)
from hookviz.drawing.pictures import encode_jpeg, encode_png
from hookviz.language.saying import localised, say, sentences
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import component, mount, packed
from hookviz.ui.state import Cell
from hookviz.ui.theme import diverging, sequential
from hookviz.wording import number

_MOST_ROWS, _MOST_COLUMNS = 10, 4  # of a table among pictures
_MAP_PX, _MAP_QUALITY = 160, 85  # twice the size on the screen

Lead = Callable[[int, Cell | None, Cell], None]
"""Opens a channel: its number, the cell under the pointer if any, and the size of its map."""
Facts = dict[str, Any]


def is_on_board(panel: Panel) -> bool:
    """Return whether a panel is shown on a board among pictures."""
    if type(panel) is TablePanel:
        return len(panel.rows) <= _MOST_ROWS and len(panel.columns) <= _MOST_COLUMNS
    if isinstance(panel, AttentionPanel):
        return False  # it has a widget of its own
    return isinstance(panel, ChartPanel | GridPanel | ImagePanel)


def show_panels(
    panels: Sequence[Panel], leads_to: Callable[[str], Lead | None], *, key: str
) -> None:
    """Show panels on one board.

    Args:
        panels: those of `is_on_board`; neighbouring grids with one title are states of one grid,
            with a switch between them.
        leads_to: returns, for a layer, the callback that opens one of its channels; None without.
        key: of the component in Streamlit's state.
    """
    groups = _group_states(panels)

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case {"panel": int(at)} as position if 0 <= at < len(groups):
                _lead(groups[at][-1], position, leads_to)

    file = bytearray()

    def add(data: bytes) -> tuple[int, int]:
        begin = len(file)
        file.extend(data)
        return begin, len(file)

    facts = [_facts(states, leads_to, add) for states in groups]
    component("panels")(
        key=key, data=packed({"panels": facts}, bytes(file)), on_picked_change=picked
    )


def _group_states(panels: Sequence[Panel]) -> list[list[Panel]]:
    """Group the states of each grid; every other panel is a group by itself."""
    groups: list[list[Panel]] = []
    for panel in panels:
        before = groups[-1][-1] if groups else None
        if (
            isinstance(panel, GridPanel)
            and panel.state
            and isinstance(before, GridPanel)
            and before.state
            and before.title == panel.title
        ):
            groups[-1].append(panel)
        else:
            groups.append([panel])
    return groups


def _lead(panel: Panel, position: dict[str, Any], leads_to: Callable[[str], Lead | None]) -> None:
    """Open the channel at a browser's `position` in a panel, if it is one."""
    lead = leads_to(getattr(panel, "layer", ""))
    if lead is None:
        return
    match panel, position:
        case GridPanel(grid=grid), {"channel": int(channel), "cell": cell}:
            at = (cell[0], cell[1]) if isinstance(cell, list) and len(cell) == 2 else None
            lead(channel, at, grid.shape[1:])
        case ChartPanel(labels=labels), {"position": int(bar)} if 0 <= bar < len(labels):
            lead(int(labels[bar]), None, (0, 0))


def _facts(
    states: Sequence[Panel],
    leads_to: Callable[[str], Lead | None],
    add: Callable[[bytes], tuple[int, int]],
) -> Facts:
    """Return the browser's facts of a panel; `add` stores bytes and returns their position."""
    panel = states[-1]
    words: Facts = {
        "title": getattr(panel, "title", ""),
        "caption": getattr(panel, "caption", ""),
        "leads": leads_to(getattr(panel, "layer", "")) is not None,
    }
    match panel:
        case ChartPanel():
            return {"panel": "chart", **_chart_facts(panel, can_be_picked=words["leads"]), **words}
        case GridPanel():
            grids = [_grid_facts(each, add) for each in states if isinstance(each, GridPanel)]
            return {"panel": "grid", "states": grids, **words}
        case ImagePanel():
            return {"panel": "image", **_image_facts(panel, add), **words}
        case TablePanel():
            rows = [[_cell_text(cell) for cell in row] for row in panel.rows]
            columns = [say(name) for name in panel.columns]
            return {"panel": "table", "columns": columns, "rows": rows, **words}
    raise AssertionError(f"{type(panel).__name__} is not drawn")


def _grid_facts(panel: GridPanel, add: Callable[[bytes], tuple[int, int]]) -> Facts:
    grid = in_theme(panel.grid)
    return {
        "name": panel.state,
        "tiles": tile_facts(grid, panel.alt, grid.sprite),
        "picture": add(grid.sprite),
        "words": sentences(panel.caption, grid.legend),
    }


def in_theme(grid: Grid) -> Grid:
    """Return the grid with zero in the page's own colour, be it dark or light."""
    name = grid.colormap.name
    if name == "RdBu_r":
        themed = diverging()
    elif name == "viridis" and not (grid.limits.low < 0).any():
        themed = sequential()
    else:
        themed = name
    return grid if themed == name else grid.coloured(themed)


def _image_facts(panel: ImagePanel, add: Callable[[bytes], tuple[int, int]]) -> Facts:
    height, width = panel.picture.shape[:2]
    facts: Facts = {"alt": panel.alt, "width": width, "height": height}
    if panel.tiles is not None:
        facts["tiles"] = _tile_places(panel.tiles)
    if not isinstance(panel, OverlayPanel):
        return facts | _file(encode_png(panel.picture), add)
    lower = encode_png(panel.lower, compress_level=1)
    return (
        facts
        | {"lower": add(lower), "lowerKey": _key(lower), "opacity": panel.opacity}
        | _file(encode_png(panel.upper, compress_level=1), add)
    )


def _file(data: bytes, add: Callable[[bytes], tuple[int, int]]) -> Facts:
    return {"picture": add(data), "key": _key(data)}


def _key(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _tile_places(tiles: Geometry) -> Facts:
    """Return the corners of a picture's tiles and their width, in shares of its sides."""
    corners = (tiles.box(at)[:2] for at in range(tiles.count))
    return {
        "places": [[left / tiles.width, top / tiles.height] for left, top in corners],
        "wide": tiles.tile_width * tiles.magnification / tiles.width,
    }


def _cell_text(cell: str | int | float) -> str:
    return number(cell) if isinstance(cell, float) else str(cell)


def tree(panel: TreePanel, key: str) -> None:
    """Show the rows of a tree; those below its first depth are folded away."""
    component("tree")(
        key=key,
        data={
            "title": panel.title,
            "columns": list(map(say, panel.columns)),
            "rows": [
                [cell if isinstance(cell, str) else localised(f"{cell:,}") for cell in row]
                for row in panel.rows
            ],
            "numbers": [
                any(not isinstance(cell, str) for cell in column)
                for column in zip(*panel.rows, strict=True)
            ],
            "depths": list(panel.depths),
            "shown": panel.shown_depth,
        },
    )


def show_maps(
    panel: MapsPanel, key: str, leading: Collection[int], on_pick: Callable[[int], None]
) -> None:
    """Show maps over their images; `on_pick` gets the position of a clicked one of `leading`."""

    def picked(sent: object) -> None:
        match sent:
            case int(position) if position in leading:
                on_pick(position)

    maps = [
        {
            "name": each.name,
            "says": each.says,
            "image": _small(each.picture),
            "map": data_url(encode_png(each.colours)),  # a pixel for every cell
            "leads": position in leading,
        }
        for position, each in enumerate(panel.maps)
    ]
    mount("maps", key, {"label": panel.title, "maps": maps}, picked=picked)


def _small(picture: Pixels) -> str:
    """Return a picture with sides of at most `_MAP_PX` as a data URL."""
    small = Image.fromarray(picture)
    small.thumbnail((_MAP_PX, _MAP_PX))
    return data_url(encode_jpeg(np.asarray(small), quality=_MAP_QUALITY), "jpeg")


def chart(panel: ChartPanel, key: str, on_pick: Callable[[int], None] | None) -> None:
    """Show a chart of bars or lines; `on_pick` gets the position of a clicked bar."""

    def picked(sent: object) -> None:
        match sent:
            case int(position) if 0 <= position < len(panel.labels) and on_pick:
                on_pick(position)

    facts = _chart_facts(panel, can_be_picked=on_pick is not None)
    mount("chart", key, facts, picked=picked)


def _chart_facts(panel: ChartPanel, *, can_be_picked: bool) -> Facts:
    axis = axis_of(panel)
    return {
        "alt": panel.alt,
        "kind": panel.kind,
        "unit": panel.unit,
        "labels": list(panel.labels),
        "places": say(panel.places),
        "isScale": panel.is_scale,
        "steps": panel.steps.tolist() if panel.positions else None,
        "picks": can_be_picked,
        "zero": 0.0 if panel.log else max(0.0, axis.share(0.0) or 0.0),
        "ticks": [list(tick) for tick in axis.ticks],
        "series": [
            {
                "name": name,
                "colours": [BELOW, ABOVE] if panel.is_signed else [COLOURS[at % len(COLOURS)]] * 2,
                "shares": [axis.share(float(value)) for value in values],
                "texts": [number(float(value)) for value in values],
            }
            for at, (name, values) in enumerate(panel.series.items())
        ],
    }
