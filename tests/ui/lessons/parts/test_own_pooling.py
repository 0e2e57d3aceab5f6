import pytest

from hookviz.ui.lessons.parts.own_pooling import PART, PICKED, about_pooling, picked_pooling
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


@pytest.mark.parametrize(("picked", "says"), [("", "number 1."), ("2", "number 3."), ("99", "4.")])
def test_the_pooling_that_is_picked_is_told_with_its_window(picked: str, says: str) -> None:
    facts = PART.facts(cat(), {**with_defaults(PART), PICKED: picked})
    assert says in str(facts["told"])
    assert facts["poolings"] == 4
    window = "3×3 cells, with a step of 2: 111×111 cells become 55×55."
    assert (window in str(facts["told"])) == (picked == "")
    assert "cells become 1×1" in str(PART.facts(star(), with_defaults(PART))["told"])
    assert "has no pooling of maps" in about_pooling(star(), (), 0)
    assert picked_pooling((), "0") <= 0
