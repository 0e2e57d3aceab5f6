from hookviz.drawing.panels import (
    ChartPanel,
    GridPanel,
    ImagePanel,
    OverlayPanel,
    Panel,
    TablePanel,
    TextPanel,
)
from hookviz.ui.lenses.lens_result import _WIDGETS, _parts
from tests.drawing.test_panels import kinds

_DRAWN = {each.__name__ for each in (ChartPanel, GridPanel, ImagePanel, OverlayPanel)}


def test_every_kind_of_panel_has_a_place() -> None:
    assert {kind.__name__ for kind in _WIDGETS} | _DRAWN == set(kinds(Panel))


def test_what_is_drawn_stands_together_and_what_is_said_between_follows() -> None:
    one = TablePanel("a", ("x",), ((1,),))
    other = TablePanel("b", ("x",), ((2,),))
    long = TablePanel("c", ("x",), ((3,),) * 40)
    says, means = TextPanel("says"), TextPanel("means")
    assert list(_parts((says, one, means, other, long))) == [says, (one, other), means, long]
