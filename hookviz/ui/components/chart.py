"""Draw a lens's chart in the page's own letters: bars or lines; bars of channels lead to them."""

from collections.abc import Callable
from typing import Any

from hookviz.drawing.charts import COLOURS, axis_of
from hookviz.drawing.colormaps import ABOVE, BELOW
from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import say
from hookviz.ui.components.files import mount
from hookviz.wording import number


def chart(panel: ChartPanel, key: str, on_pick: Callable[[int], None] | None) -> None:
    """Show the chart as wide as there is room; `on_pick` gets the position of a bar clicked."""

    def picked(sent: object) -> None:
        match sent:
            case int(position) if 0 <= position < len(panel.labels) and on_pick:
                on_pick(position)

    facts = chart_facts(panel, can_be_picked=on_pick is not None)
    mount("chart", key, facts, picked=picked)


def chart_facts(panel: ChartPanel, *, can_be_picked: bool) -> dict[str, Any]:
    """Return the chart as the browser draws it, ready for JSON."""
    axis = axis_of(panel)
    return {
        "alt": panel.alt,
        "kind": panel.kind,
        "unit": panel.unit,
        "labels": list(panel.labels),
        "places": say(panel.places),
        "isScale": panel.is_scale,
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
