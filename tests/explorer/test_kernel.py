"""A channel's kernel as an answer: its strongest inputs against NumPy's norms."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.drawing.pictures import kernel_picture
from hookviz.errors import SettingError
from hookviz.explorer.question import NotThereError
from hookviz.explorer.view import View
from hookviz.wording import number
from tests.explorer.asking import ask, decoded
from tests.explorer.subjects import subject_of, words
from tests.networks import as_model, seeded


class Many(nn.Module):
    """A plain convolution, one of eight inputs, a grouped one, and a sum of two maps before one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.added = nn.Conv2d(8, 2, 1)
        self.up = nn.ConvTranspose2d(2, 2, 2)

    def forward(self, images: Tensor) -> Tensor:
        first = self.first(images)
        maps = self.depthwise(self.grouped(self.second(first)))
        scores: Tensor = self.up(self.added(maps + first)).mean((2, 3))
        return scores


@pytest.fixture
def network() -> Many:
    return seeded(Many).eval()


def test_the_strongest_by_weight_are_numpys(network: Many) -> None:
    facts = ask(subject_of(as_model(network)), "kernel", View(layer="second"), channel=5).facts
    norms = np.linalg.norm(network.second.weight.detach().numpy()[5].reshape(8, 9), axis=1)
    order = np.argsort(-norms)[:6].tolist()
    rows = facts["byWeight"]["rows"]
    assert [row["input"] for row in rows] == order
    assert [row["value"] for row in rows] == [number(float(norms[index])) for index in order]
    assert rows[0]["says"] == f"input {order[0]} · {rows[0]['value']}"
    assert rows[0]["hint"] == f"channel {order[0]} of first"
    norm = number(float(np.sqrt(np.square(norms.astype(np.float64)).sum())))
    said = words(facts["says"])
    assert said.startswith("8 × 3 × 3 weights, one 3×3 slice for each of the 8 input channels.")
    assert said.endswith(f"Norm (root of the sum of squares): {norm}.")


def test_the_strongest_by_contribution_are_a_convolution_of_one_input_each(network: Many) -> None:
    subject = subject_of(as_model(network))
    facts = ask(subject, "kernel", View(layer="second"), channel=2).facts
    capture = hookviz.capture(subject.model, subject.model_input, inputs=True)
    given = capture.inputs("second")[0].values
    with torch.no_grad():
        added = [
            F.conv2d(given[None, [index]], network.second.weight[2:3, [index]], padding=1)
            .abs()
            .mean()
            .item()
            for index in range(8)
        ]
    rows = facts["byContribution"]["rows"]
    order = np.argsort(-np.array(added))[:6].tolist()
    assert [row["input"] for row in rows] == order
    assert [row["value"] for row in rows] == [number(added[index]) for index in order]


def test_it_says_where_the_inputs_lead(network: Many) -> None:
    subject = subject_of(as_model(network))
    facts = {
        layer: ask(subject, "kernel", View(layer=layer), channel=1).facts
        for layer in ("first", "second", "added")
    }
    assert [each["upstream"] for each in facts.values()] == [None, "first", None]
    assert facts["first"]["note"] == "They are the image's own channels."
    assert facts["second"]["note"] == ""
    assert facts["added"]["note"].startswith("Several maps were added or joined")
    assert facts["added"]["byWeight"]["rows"][0]["hint"] == ""


@pytest.mark.parametrize(
    ("layer", "inputs", "says"),
    [
        ("grouped", {6, 7}, "its group’s 2 input channels."),
        ("depthwise", {7}, "its group’s 1 input channels (depthwise)."),
    ],
)
def test_a_grouped_layer_has_its_groups_inputs(
    network: Many, layer: str, inputs: set[int], says: str
) -> None:
    facts = ask(subject_of(as_model(network)), "kernel", View(layer=layer), channel=7).facts
    assert {row["input"] for row in facts["byWeight"]["rows"]} == inputs
    assert {row["input"] for row in facts["byContribution"]["rows"]} == inputs
    assert says in words(facts["says"])


def test_the_first_layers_kernel_is_in_colour(network: Many) -> None:
    subject = subject_of(as_model(network))
    colour = ask(subject, "kernel", View(layer="first"), channel=4).facts["colour"]
    picture = decoded(colour["picture"])
    assert picture.shape == (318, 318, 3)  # 106 pixels for each of 3 weights
    small = kernel_picture(network.first.weight.detach().numpy()[4])
    np.testing.assert_array_equal(picture[53::106, 53::106], small)
    assert colour["alt"] == "The kernel of channel 4 in colour."
    assert ask(subject, "kernel", View(layer="second"), channel=4).facts["colour"] is None


def test_the_slices_are_on_one_scale(network: Many) -> None:
    facts = ask(subject_of(as_model(network)), "kernel", View(layer="second"), channel=0).facts
    most = number(float(network.second.weight[0].detach().abs().max()))
    assert facts["ends"].endswith(f"from blue −{most} to red {most}")
    assert decoded(facts["slices"]).shape[1] >= 24
    assert facts["slicesAlt"].startswith("The kernel's slices, one for each input channel. ")


def test_what_is_not_there_is_refused_in_words(network: Many) -> None:
    subject = subject_of(as_model(network))
    with pytest.raises(NotThereError, match=r"second has no channel .*: its channels are 0 to 7\."):
        ask(subject, "kernel", View(layer="second"), channel=8)
    with pytest.raises(SettingError, match="is a ConvTranspose2d"):
        ask(subject, "kernel", View(layer="up"), channel=0)
