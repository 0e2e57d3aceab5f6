from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import ChartPanel, PicturesPanel, TablePanel, TextPanel
from hookviz.errors import ModelError, SettingError
from hookviz.lenses.segmentation import palette
from hookviz.types import Preprocess
from tests.codegen.script_cases import ScriptCase
from tests.networks import seeded
from tests.pictures import picture

LRASPP = ("lraspp_mobilenet_v3_large",)
SCRIPTS = (ScriptCase({"number": 8}, LRASPP, 1e-5), ScriptCase({}, LRASPP, 1e-5))

SLUG = "segmentation"
LABELS = ["__background__", "cat", "dog", "tree"]


class Segmenting(nn.Module):
    """Scores of four classes for each pixel, by name as torchvision gives them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"out": 4 * self.conv(images)}


@pytest.fixture(scope="module")
def model() -> hookviz.Model:
    return hookviz.wrap(seeded(Segmenting), Preprocess(24, 20), categories=LABELS)


def test_its_numbers_are_those_of_the_scores(model: hookviz.Model) -> None:
    made = hookviz.prepare_input(model, picture())
    result = hookviz.run_lens(SLUG, model, made, number=2)
    with torch.no_grad():
        scores = model.network(made.tensor)["out"][0].double().numpy()
    powers = np.exp(scores - scores.max(0))
    expected = powers / powers.sum(0)
    np.testing.assert_allclose(result.values["probability"], expected[2], atol=1e-6)
    np.testing.assert_array_equal(result.values["winners"], scores.argmax(0))
    for number in range(4):
        share = (scores.argmax(0) == number).mean()
        assert result.values["shares"][number] == pytest.approx(share)


def test_it_tells_each_class_s_share_and_begins_with_the_largest_that_is_one(
    model: hookviz.Model,
) -> None:
    result = hookviz.run_lens(SLUG, model, picture())
    shares = result.values["shares"]
    assert int(result.values["target"]) == 1 + int(shares[1:].argmax())
    (table,) = (each for each in result.panels if isinstance(each, TablePanel))
    assert [row[0] for row in table.rows] == [*np.argsort(-shares, kind="stable")]
    assert table.rows[0][1] == LABELS[int(shares.argmax())]
    (legend,) = (each for each in result.panels if isinstance(each, PicturesPanel))
    assert len(legend.names) == (shares > 0).sum()
    swatch: Any = legend.pictures[0]
    np.testing.assert_array_equal(swatch[0, 0], palette(4)[int(shares.argmax())])
    assert not any(isinstance(each, ChartPanel) for each in result.panels)
    _, about = (each for each in result.panels if isinstance(each, TextPanel))
    assert "4 classes" in about.text


def test_a_class_that_is_not_there_and_a_network_without_are_refused(
    model: hookviz.Model, tiny: hookviz.Model
) -> None:
    with pytest.raises(SettingError, match="There is no class 4: Segmenting has 4, from 0"):
        hookviz.run_lens(SLUG, model, picture(), number=4)
    with pytest.raises(ModelError, match="such as lraspp_mobilenet_v3_large"):
        hookviz.run_lens(SLUG, tiny, picture())
