import numpy as np
import pytest
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import GridPanel, ImagePanel
from hookviz.errors import SettingError
from tests.codegen.script_cases import CONVNEXT, SHAPESNET, SQUEEZENET, ScriptCase
from tests.lenses.said import texts
from tests.networks import as_model, random_input
from tests.pictures import picture

SCRIPTS = (  # here a square at a time
    ScriptCase({"window": 20, "stride": 16}, rounding=1e-4),
    ScriptCase({"baseline": "blurred", "target": 1, "stride": 30}, SHAPESNET, 1e-4),
    ScriptCase(
        {
            "layer": "features.3.expand1x1",
            "channel": 5,
            "row": 3,
            "column": 2,
            "baseline": "black",
            "window": 24,
            "stride": 20,
        },
        SQUEEZENET,
        1e-4,
    ),
    ScriptCase(
        {"layer": "features.1.0.block.3", "channel": 5, "window": 32, "stride": 32}, CONVNEXT
    ),
)


class Corner(nn.Module):
    """One score: the red of a pixel in row 2, column 12 of its 16×16 input."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        score: Tensor = self.same(images)[:, :1, 2, 12]
        return score


def test_what_it_is_least_without_is_said_and_framed() -> None:
    image = random_input(0)
    image[0, 0, 2, 12] = 4.0
    result = hookviz.run_lens("occlusion", as_model(Corner()), image, window=4, stride=4)
    assert (
        "Whole, the score of class 0 is 4.00; it is least, 0, without rows 0 to 3 and columns 12"
        in (texts(result))
    )
    assert "It does not show" in texts(result)
    expected = np.zeros((16, 16))
    expected[0:4, 12:16] = 4
    np.testing.assert_allclose(result.values["map"], expected, atol=1e-6)
    assert result.values["drops"].shape == (4, 4)
    assert float(result.values["value"]) == 4
    on_image, framed = (panel for panel in result.panels if isinstance(panel, ImagePanel))
    reddest = on_image.picture[..., 0].astype(int) - on_image.picture[..., 2]
    rows, columns = np.nonzero(reddest > 20)
    assert (rows.max(), columns.min()) == (159, 480)  # of 640
    white = (framed.picture == 255).all(2)
    assert white[160:162, 480:].all()
    assert any(isinstance(panel, GridPanel) for panel in result.panels)


def test_a_part_that_only_helps_by_being_hidden() -> None:
    image = random_input(0)
    image[0, 0, 2, 12] = -4.0
    result = hookviz.run_lens("occlusion", as_model(Corner()), image, window=4, stride=4)
    assert "no part makes it less by being hidden" in texts(result)
    assert float(result.values["map"].min()) == -4


def test_the_size_of_the_square_follows_the_input(tiny: hookviz.Model) -> None:
    result = hookviz.run_lens("occlusion", tiny, picture())
    assert (result.chosen["window"], result.chosen["stride"]) == (2, 2)
    large = hookviz.load_model("shapesnet")
    model_input = hookviz.prepare_input(large, picture(), size=140)
    result = hookviz.run_lens("occlusion", large, model_input)
    assert (result.chosen["window"], result.chosen["stride"]) == (20, 14)


def test_a_step_is_no_longer_than_the_square(tiny: hookviz.Model) -> None:
    result = hookviz.run_lens("occlusion", tiny, picture(), window=5, stride=9)
    assert result.values["drops"].shape == (4, 4)  # from 0, 5, 10 and 15 of 16
    assert "5×5 pixels, in steps of 5, hid 16 parts" in texts(result)


def test_a_square_larger_than_the_input_is_refused(tiny: hookviz.Model) -> None:
    says = "window=17 is more than the input has: 16×16 pixels. It can be 1 to 16"
    with pytest.raises(SettingError, match=says):
        hookviz.run_lens("occlusion", tiny, picture(), window=17)
