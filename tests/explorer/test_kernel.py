"""A channel's kernel: its strongest inputs against NumPy's norms, its walk cell by cell."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.drawing.pictures import kernel_picture
from hookviz.errors import SettingError
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explorer.kernel import kernel_walk
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.wording import number
from tests.explorer.asking import ask, decoded, floats, subject_of, words
from tests.networks import as_model, seeded


class Many(nn.Module):
    """Convolutions of 70 inputs and of eight, grouped ones, a pooled map, a sum before the last."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.pool = nn.MaxPool2d(2)
        self.added = nn.Conv2d(8, 70, 1)
        self.wide = nn.Conv2d(70, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 2, 2)

    def forward(self, images: Tensor) -> Tensor:
        first = self.first(images)
        maps = self.pool(self.depthwise(self.grouped(self.second(first))))
        scores: Tensor = self.up(self.wide(self.added(maps + first[..., ::2, ::2]))).mean((2, 3))
        return scores


@pytest.fixture(scope="module")
def network() -> Many:
    return seeded(Many).eval()


@pytest.fixture(scope="module")
def subject(network: Many) -> Subject:
    return subject_of(as_model(network))


def by_contribution(subject: Subject, layer: str, channel: int) -> list[tuple[float, int]]:
    """What each input adds to a channel's map in the mean, and its number, the most first."""
    capture = hookviz.capture(subject.model, subject.model_input, inputs=True)
    given = capture.inputs(layer)[0].values
    weight: Any = subject.model.network.get_submodule(layer).weight
    with torch.no_grad():
        added = [
            float(F.conv2d(given[None, [k]], weight[[channel]][:, [k]], padding=1).abs().mean())
            for k in range(len(given))
        ]
    return sorted(zip(added, range(len(added)), strict=True), key=lambda each: -each[0])


def test_the_strongest_by_weight_and_by_contribution_are_numpys_and_torchs(network: Many) -> None:
    subject, view = subject_of(as_model(network)), View(layer="second")
    facts = ask(subject, "kernel", view, channel=5).facts
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
    added = by_contribution(subject, "second", 5)[:6]
    rows = facts["byContribution"]["rows"]
    assert [row["input"] for row in rows] == [index for _, index in added]
    assert [row["value"] for row in rows] == [number(value) for value, _ in added]
    most = number(float(network.second.weight[5].detach().abs().max()))
    assert facts["ends"].endswith(f"from blue −{most} to red {most}")
    assert decoded(facts["slices"]).shape[1] >= 24
    assert facts["slicesAlt"].startswith("The kernel's slices, one for each input channel. ")
    with pytest.raises(NotThereError, match=r"second has no channel .*: its channels are 0 to 7\."):
        ask(subject, "kernel", view, channel=8)
    with pytest.raises(SettingError, match="is a ConvTranspose2d"):
        ask(subject, "kernel", View(layer="up"), channel=0)


def test_it_says_where_the_inputs_lead_and_those_of_an_image_are_in_colour(network: Many) -> None:
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
    colour = facts["first"]["colour"]
    picture = decoded(colour["picture"])
    assert picture.shape == (318, 318, 3)  # 106 pixels for each of 3 weights
    small = kernel_picture(network.first.weight.detach().numpy()[1])
    np.testing.assert_array_equal(picture[53::106, 53::106], small)
    assert colour["alt"] == "The kernel of channel 1 in colour."
    assert facts["second"]["colour"] is None


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


class Grey(nn.Module):
    """A convolution of one input channel, so that its walk over that is all of its sum."""

    def __init__(self, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, stride=stride, padding=padding, dilation=dilation)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.conv(images[:, :1])
        return maps


def walked(stride: int, padding: int, dilation: int, side: int, cell: tuple[int, int]) -> Any:
    model = as_model(seeded(lambda: Grey(stride, padding, dilation)).eval())
    image = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(5))
    return kernel_walk(record_layer_call(model, image, "conv"), 1, 0, cell)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "side"),
    [(1, 1, 1, 12), (2, 1, 1, 13), (1, 2, 2, 12), (3, 0, 2, 20), (1, 1, 1, 300), (2, 3, 2, 700)],
)
def test_walking_over_what_is_sent_gives_the_map(
    stride: int, padding: int, dilation: int, side: int
) -> None:
    facts = walked(stride, padding, dilation, side, (2, 3))
    came = F.conv2d(
        torch.tensor(floats(facts["input"], 1, 1, *facts["inputSize"])),
        torch.tensor(facts["kernel"])[None, None],
        torch.tensor([facts["bias"]]),
        stride=facts["stride"],
        dilation=facts["dilation"],
    )[0, 0]
    sent = torch.tensor(floats(facts["output"], *facts["size"]))
    torch.testing.assert_close(came, sent, rtol=1e-5, atol=1e-5)
    assert facts["others"] == 0
    large = walked(1, 1, 1, 400, (390, 200))  # the cells around the chosen one are sent
    (top, left), (rows, columns) = large["first"], large["size"]
    assert top <= 390 < top + rows
    assert left <= 200 < left + columns
    assert max(large["inputSize"]) <= 256
    assert top + rows == 400  # at the edge the window ends with the map
    padded = walked(1, 1, 1, 12, (0, 0))
    values = floats(padded["input"], *padded["inputSize"])
    assert [*padded["inside"]] == [1, 1, 12, 12]
    assert not values[0].any()
    assert values[1:-1, 1:-1].all()


CELL: dict[str, Any] = {"channel": 5, "row": 3, "column": 4}


def test_it_begins_with_the_input_that_adds_most(subject: Subject) -> None:
    facts = ask(subject, "walk", View(layer="wide"), **CELL).facts
    order = [index for _, index in by_contribution(subject, "wide", 5)]
    assert facts["chosen"] == order[0]
    assert [each["value"] for each in facts["inputs"]] == order[:64]
    assert facts["inputs"][0]["says"] == f"input {order[0]}, which adds most"
    assert facts["inputs"][1]["says"] == f"input {order[1]}"
    assert facts["colours"] == subject.colours.diverging
    assert facts["cell"] == [3, 4]
    pooled = View(layer="depthwise", after="MaxPool2d")
    assert ask(subject, "walk", pooled, **CELL).facts["cell"] == [7, 9]


@pytest.mark.parametrize("which", [1, 69])
def test_any_input_can_be_walked_over(network: Many, subject: Subject, which: int) -> None:
    chosen = by_contribution(subject, "wide", 5)[which][1]
    facts = ask(subject, "walk", View(layer="wide"), input=chosen, **CELL).facts
    assert facts["chosen"] == chosen
    assert chosen in [each["value"] for each in facts["inputs"]]
    np.testing.assert_allclose(
        facts["kernel"], network.wide.weight[5, chosen].detach().numpy(), rtol=1e-6
    )
    capture = hookviz.capture(subject.model, subject.model_input, inputs=True)
    padded = F.pad(capture.inputs("wide")[0].values[chosen], (1, 1, 1, 1)).numpy()
    np.testing.assert_array_equal(floats(facts["input"], 10, 10), padded)
    output = capture["wide"].values[5].numpy()
    np.testing.assert_array_equal(floats(facts["output"], 8, 8), output)


def test_a_grouped_layers_inputs_are_its_groups(subject: Subject) -> None:
    view = View(layer="grouped")
    facts = ask(subject, "walk", view, **CELL).facts
    assert {each["value"] for each in facts["inputs"]} == {4, 5}
    assert ask(subject, "walk", view, input=5, **CELL).facts["chosen"] == 5
    with pytest.raises(NotThereError, match="5 of grouped has no input 2: its inputs are 4 to 5"):
        ask(subject, "walk", view, input=2, **CELL)


def test_a_walk_that_is_not_there_is_refused_in_words(subject: Subject) -> None:
    with pytest.raises(NotThereError, match=r"has no input .*: its inputs are 0 to 69\."):
        ask(subject, "walk", View(layer="wide"), input=70, **CELL)
    for axis in CELL:
        with pytest.raises(NotThereError, match=f"wide has no {axis}"):
            ask(subject, "walk", View(layer="wide"), **{**CELL, axis: 16})
    view = View(layers="maps", layer="pool")
    with pytest.raises(SettingError, match="is a MaxPool2d"):
        ask(subject, "walk", view, channel=0, row=0, column=0)
