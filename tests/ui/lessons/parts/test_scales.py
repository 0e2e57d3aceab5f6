"""The weakest channel of a layer, found once more by NumPy."""

import numpy as np
import pytest

import hookviz
from hookviz.ui.lessons.parts.scales import PART, PICKED
from hookviz.wording import number
from tests.ui.lessons.parts.scenes import star, with_defaults


@pytest.mark.parametrize("layer", ["first", "early", "last"])
def test_facts_are_of_the_channel_with_the_smallest_values(layer: str) -> None:
    facts = PART.facts(star(), with_defaults(PART, layer=layer))
    name = str(facts["layer"])
    maps = hookviz.capture(star().model, star().model_input, name)[name].values.numpy()
    sizes = [np.abs(each).max() for each in maps]
    assert facts["channel"] == int(np.argmin(sizes))
    assert facts["largest"] == number(float(min(sizes)))
    assert facts["times"] == pytest.approx(max(sizes) / min(sizes))
    assert facts["channels"] == len(maps)
    link = PART.link(star(), with_defaults(PART, layer=layer))
    assert (link["layer"], link["channel"]) == (name, str(facts["channel"]))


def test_another_channel_that_was_picked_is_told_of_with_its_own_size() -> None:
    facts = PART.facts(star(), {**with_defaults(PART, layer="first"), PICKED: "5"})
    name = str(facts["layer"])
    maps = hookviz.capture(star().model, star().model_input, name)[name].values.numpy()
    assert facts["channel"] == 5 != facts["weakest"]
    assert facts["largest"] == number(float(np.abs(maps[5]).max()))
    assert facts["times"] == pytest.approx(np.abs(maps).max() / np.abs(maps[5]).max())
