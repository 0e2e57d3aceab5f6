"""What is told of a network's own poolings."""

import pytest

from hookviz.ui.lessons.parts.own_pooling import PART, PICKED, picked_pooling, told
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


@pytest.mark.parametrize(("picked", "says"), [("", "number 1."), ("2", "number 3."), ("99", "4.")])
def test_the_pooling_that_is_picked_is_told(picked: str, says: str) -> None:
    facts = PART.facts(cat(), {**with_defaults(PART), PICKED: picked})
    assert says in str(facts["told"])
    assert facts["poolings"] == 4


def test_windows_are_told_and_one_of_the_whole_map_is() -> None:
    assert "3×3 cells, with a step of 2: 111×111 cells become 55×55." in str(
        PART.facts(cat(), with_defaults(PART))["told"]
    )
    assert "cells become 1×1" in str(PART.facts(star(), with_defaults(PART))["told"])


def test_a_network_without_pooling_says_so() -> None:
    assert "has no pooling of maps" in told(star(), (), 0)
    assert picked_pooling((), "0") <= 0
