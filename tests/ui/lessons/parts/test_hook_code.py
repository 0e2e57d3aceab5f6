"""A script as a part of a lesson: its facts are its own, and a name that is none is refused."""

import json

import numpy as np
import pytest

import hookviz
from hookviz.language.speaking import speaking
from hookviz.ui.lessons.parts.hook_code import CHOICES, EDITED, PART, chosen_script, run
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_facts_are_what_the_names_of_the_script_hold() -> None:
    facts = PART.facts(star(), with_defaults(PART, script="see"))
    layer = facts["layer"]
    assert layer == star().trace.convs[0].name
    values = hookviz.capture(star().model, star().model_input, layer)[layer].values
    assert (facts["channels"], facts["rows"], facts["columns"]) == values.shape
    assert facts["channel"] == int(values.flatten(1).amax(1).argmax())


def test_facts_are_those_of_what_was_chosen_and_of_what_was_edited() -> None:
    last = star().trace.convs[-1]
    chosen = {CHOICES: json.dumps({"LAYER": last.name, "CHANNEL": 3, "GONE": 1})}
    facts = PART.facts(star(), {**with_defaults(PART, script="see"), **chosen})
    assert (facts["layer"], facts["channel"], facts["channels"]) == (
        *(last.name, 3),
        last.output_shape[0],
    )
    edited = {EDITED: json.dumps({"channels": 2})}
    assert PART.facts(star(), {**with_defaults(PART, script="see"), **edited})["channels"] == 2


@pytest.mark.parametrize("name", ["see", "fails", "in_place", "remove"])
def test_in_chinese_it_runs_on_the_chosen_network_too(name: str) -> None:
    first = star().trace.convs[0].name
    with speaking("zh_CN"):
        script, kept = chosen_script(name, star(), {})
        assert f'LAYER = "{first}"' in script.text
        assert "个卷积层" in script.text or "one of" in script.text
        run(script, star(), kept)


def test_a_layer_of_another_network_in_a_link_is_left_aside() -> None:
    chosen = {CHOICES: json.dumps({"LAYER": "features.0", "CHANNEL": 60})}
    facts = PART.facts(star(), {**with_defaults(PART, script="see"), **chosen})
    assert facts["layer"] == star().trace.convs[0].name


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


def test_a_script_that_is_none_is_refused() -> None:
    option = PART.options[0]
    assert "in_place" in option.check("inplace")
    assert option.check("in_place") == ""
