"""What a lens's result says in words."""

from hookviz.drawing.panels import TextPanel
from hookviz.lenses.contract.lens import LensResult


def texts(result: LensResult, tone: str = "") -> str:
    """All that it says, or all in one tone, one panel after another."""
    said = [panel for panel in result.panels if isinstance(panel, TextPanel)]
    return " ".join(panel.text for panel in said if tone in {"", panel.tone})
