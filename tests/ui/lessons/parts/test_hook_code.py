import json

import numpy as np
import pytest

import hookviz
from hookviz.language.speaking import speaking
from hookviz.ui.lessons.parts.hook_code import CHOICES, EDITED, PART, chosen_script, run
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_facts_are_what_the_names_of_the_script_hold() -> None:
    option = PART.options[0]
    assert "in_place" in option.check("inplace")
    assert option.check("in_place") == ""
    see = with_defaults(PART, script="see")
    facts = PART.facts(star(), see)
    first, *_, last = star().trace.convs
    values = hookviz.capture(star().model, star().model_input, first.name)[first.name].values
    assert (facts["layer"], facts["channel"]) == (
        first.name,
        int(values.flatten(1).amax(1).argmax()),
    )
    assert (facts["channels"], facts["rows"], facts["columns"]) == values.shape
    chosen = {CHOICES: json.dumps({"LAYER": last.name, "CHANNEL": 3, "GONE": 1})}
    facts = PART.facts(star(), {**see, **chosen})
    assert (facts["layer"], facts["channel"]) == (last.name, 3)
    assert facts["channels"] == last.output_shape[0]
    of_another_network = {CHOICES: json.dumps({"LAYER": "features.0", "CHANNEL": 60})}
    assert PART.facts(star(), {**see, **of_another_network})["layer"] == first.name
    assert PART.facts(star(), {**see, EDITED: json.dumps({"channels": 2})})["channels"] == 2


@pytest.mark.parametrize("name", ["see", "fails", "in_place", "remove"])
def test_in_chinese_it_runs_on_the_chosen_network_too(name: str) -> None:
    first = star().trace.convs[0].name
    with speaking("zh_CN"):
        script, kept = chosen_script(name, star(), {})
        assert f'LAYER = "{first}"' in script.text
        assert "个卷积层" in script.text or "one of" in script.text
        run(script, star(), kept)


def test_the_lowest_value_that_is_told_is_that_of_the_map_that_is_drawn() -> None:
    """A hook that keeps a reference: the text said −1.07 beside a map from −0.251 up."""
    facts = PART.facts(star(), with_defaults(PART, script="in_place"))
    first = star().trace.convs[0].name
    values = hookviz.capture(star().model, star().model_input, first)[first].values
    expected = values[int(facts["channel"])].numpy()
    script, choices = chosen_script("in_place", star(), {})
    drawn = run(script, star(), choices).pictures["as put out"]
    np.testing.assert_allclose(drawn, expected, atol=1e-6)
    assert facts["true_lowest"] == pytest.approx(expected.min(), abs=1e-6)
    assert facts["lowest"] == 0
    assert facts["wrong"] == pytest.approx((expected < 0).mean())
