"""What a view leaves open is decided by the page's colours and the number of channels."""

from hookviz.drawing.statistics import SORTS
from hookviz.explorer.look import Look, look_of, sorts, tops
from hookviz.explorer.subject import Colours
from hookviz.explorer.view import View

DARK = Colours("berlin", "inferno")


def test_automatic_follows_the_page() -> None:
    assert look_of(View(), DARK, 64) == Look(
        "index", None, "balanced", "inferno", "berlin", "berlin"
    )
    assert look_of(View(), Colours(), 64).signed_colormap == "RdBu_r"


def test_a_chosen_colormap_is_that_of_any_layer_but_not_of_a_difference() -> None:
    look = look_of(View(colours="gray", scale="layer"), DARK, 64)
    assert (look.colormap, look.signed_colormap, look.of_difference) == ("gray", "gray", "berlin")
    assert look.scale == "layer"
    assert sorts(alike=False) == tuple(SORTS)
    assert set(sorts(alike=True)) - set(SORTS) == {"change"}


def test_as_many_channels_as_there_are_is_all() -> None:
    for top, channels, shown in ((16, 17, 16), (16, 16, None), (64, 8, None)):
        assert look_of(View(top=top), DARK, channels).top == shown
    assert tops(1) == tops(16) == ("all",)
    assert tops(65) == ("all", "16", "64")
    assert tops(2048) == ("all", "16", "64", "256")
