"""The page has a widget for every kind of panel."""

from hookviz.drawing.panels import Panel
from hookviz.ui.lenses.lens_result import _WIDGETS
from tests.drawing.test_panels import kinds


def test_every_kind_of_panel_has_a_widget() -> None:
    assert {kind.__name__ for kind in _WIDGETS} == set(kinds(Panel))
