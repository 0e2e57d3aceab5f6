import numpy as np
import pytest

import hookviz
from hookviz.ui.lessons.parts.scales import PART, PICKED
from hookviz.wording import number
from tests.ui.lessons.parts.scenes import star, with_defaults


@pytest.mark.parametrize(
    ("layer", "picked"), [("first", {}), ("early", {}), ("last", {}), ("first", {PICKED: "5"})]
)
def test_facts_are_of_the_weakest_channel_or_of_the_one_that_is_picked(
    layer: str, picked: dict[str, str]
) -> None:
    options = {**with_defaults(PART, layer=layer), **picked}
    facts = PART.facts(star(), options)
    name = str(facts["layer"])
    maps = hookviz.capture(star().model, star().model_input, name)[name].values.numpy()
    sizes = [float(np.abs(each).max()) for each in maps]
    channel = int(picked.get(PICKED, np.argmin(sizes)))
    assert (facts["channel"], facts["weakest"]) == (channel, int(np.argmin(sizes)))
    assert facts["largest"] == number(sizes[channel])
    assert facts["times"] == pytest.approx(max(sizes) / sizes[channel])
    assert facts["channels"] == len(maps)
    link = PART.link(star(), options)
    assert (link["layer"], link["channel"]) == (name, str(facts["weakest"]))
