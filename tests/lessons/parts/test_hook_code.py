"""A script as a part of a lesson: its facts are its own, and a name that is none is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from hookviz.lessons.parts.hook_code import PART
from hookviz.lessons.scripts import read_script, run_script
from tests.lessons.parts.scenes import star, with_defaults


def test_facts_are_what_the_names_of_the_script_hold() -> None:
    facts = PART.facts(star(), with_defaults(PART, script="see"))
    assert (facts["channels"], facts["rows"], facts["columns"]) == (8, 30, 30)
    assert facts["channel"] == 0


def test_the_lowest_value_that_is_told_is_that_of_the_map_that_is_drawn() -> None:
    """A hook that keeps a reference: the text said −1.07 beside a map from −0.251 up."""
    facts = PART.facts(star(), with_defaults(PART, script="in_place"))
    torch.manual_seed(0)
    conv = nn.Conv2d(1, 8, 3)
    image = torch.zeros(1, 1, 32, 32)
    image[..., 8:24, 8:24] = 1
    drawn = run_script(read_script("in_place"), {}).pictures["as put out"]
    expected = conv(image)[0, 0].detach().numpy()
    np.testing.assert_allclose(drawn, expected, atol=1e-6)
    assert facts["true_lowest"] == pytest.approx(expected.min(), abs=1e-6)
    assert facts["lowest"] == 0
    assert facts["wrong"] == pytest.approx((expected < 0).mean())


def test_a_script_that_is_none_is_refused() -> None:
    option = PART.options[0]
    assert "in_place" in option.check("inplace")
    assert option.check("in_place") == ""
