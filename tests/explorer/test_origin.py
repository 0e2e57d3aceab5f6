"""Why a cell has its value, in numbers and as data, against a convolution of the input."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.explorer.question import NotThereError
from hookviz.explorer.view import View
from hookviz.types import Preprocess
from hookviz.wording import number
from tests.attending import plain_pass
from tests.explorer.asking import Turns, ask, floats, subject_of, words
from tests.networks import Tiny, as_model, seeded
from tests.token_networks import TOKEN_NETWORKS


class Pooled(nn.Module):
    """A convolution, a norm, an activation, and pooling to half of the size."""

    def __init__(self) -> None:
        super().__init__()
        self.spread = nn.Conv2d(3, 9, 1)
        self.conv = nn.Conv2d(9, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(4, 2, 2, stride=2)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.pool(self.relu(self.norm(self.conv(self.spread(images)))))
        scores: Tensor = self.up(maps).mean((2, 3))
        return scores


@pytest.fixture
def network() -> Pooled:
    return seeded(Pooled).eval()


@pytest.mark.parametrize(("channel", "cell"), [(0, (0, 0)), (3, (7, 3)), (3, (15, 15))])
def test_the_sum_is_a_convolution_of_the_recorded_input(
    network: Pooled, channel: int, cell: tuple[int, int]
) -> None:
    row, column = cell
    subject = subject_of(as_model(network))
    facts = ask(subject, "cell", View(layer="conv"), channel=channel, row=row, column=column).facts
    capture = hookviz.capture(subject.model, subject.model_input, inputs=True)
    given = F.pad(capture.inputs("conv")[0].values, (1, 1, 1, 1)).double()
    products = given[:, row : row + 3, column : column + 3] * network.conv.weight[channel].double()
    terms = products.sum((1, 2)).detach().numpy()
    largest = np.argsort(-np.abs(terms))[:5]
    assert [each["input"] for each in facts["rows"]] == largest.tolist()
    np.testing.assert_allclose([each["term"] for each in facts["rows"]], terms[largest], rtol=1e-6)
    assert facts["most"] == pytest.approx(np.abs(terms).max())
    patch = given[largest[0], row : row + 3, column : column + 3]
    np.testing.assert_allclose(facts["rows"][0]["patch"], patch, rtol=1e-4)
    assert facts["rest"].startswith("the other 4 inputs together")
    value = capture["conv"].values[channel, row, column]
    title = f"Why {number(float(value))} at row {row}, column {column}?"
    assert facts["title"] == title
    assert words(facts["sum"]).endswith("as the network computed")
    assert dict(facts["sum"])["bias"].startswith("One learned number")
    assert facts["upstream"] == "spread"
    assert facts["colours"] == subject.colours.diverging
    assert (facts["hasKernel"], facts["canWalk"]) == (True, True)
    norm, relu = map(words, facts["steps"])
    assert norm.startswith("BatchNorm2d norm (value − ")
    assert relu.startswith("ReLU relu gives ")
    asked: dict[str, Any] = {"channel": channel, "row": row, "column": column}
    after = View(layer="conv", after="ReLU")  # which is explained by its layer
    assert ask(subject, "cell", after, **asked).facts == facts
    shown = ask(subject, "channel", after, channel=channel).facts
    assert relu.endswith(number(float(floats(shown["values"], 16, 16)[cell])))
    pooled = View(layer="conv", after="MaxPool2d")  # which is explained at the same cell
    same = ask(subject, "cell", pooled, channel=2, row=7, column=2).facts
    assert same["title"].endswith("at row 15, column 5?")
    with pytest.raises(NotThereError, match="pool has no row 8: its rows are 0 to 7"):
        ask(subject, "cell", pooled, channel=2, row=8, column=0)
    few = ask(subject, "cell", View(layer="spread"), **asked).facts
    assert (len(few["rows"]), few["rest"]) == (3, "")


def test_the_layers_call_is_recorded_once(network: Pooled) -> None:
    turns = Turns()
    subject = subject_of(as_model(network), take_turn=turns)
    for column in range(4):
        ask(subject, "cell", View(layer="conv"), channel=1, row=2, column=column)
    ask(subject, "kernel", View(layer="conv"), channel=3)
    ask(subject, "walk", View(layer="conv"), channel=3, row=2, column=2)
    assert [kind for _, kind, _ in turns.taken] == ["capture", "input"]
    assert turns.taken[1] == ("Recording the input", "input", "conv")


def test_a_layer_without_a_sum_of_products_says_what_it_does(network: Pooled) -> None:
    subject = subject_of(as_model(network))
    view = View(layers="maps", layer="pool")
    facts = ask(subject, "cell", view, channel=0, row=0, column=0).facts
    assert facts["info"].startswith("MaxPool2d keeps the largest of each 2×2 cells")
    assert (facts["hasKernel"], facts["canWalk"]) == (False, False)
    facts = ask(subject, "cell", View(layer="up"), channel=0, row=0, column=0).facts
    assert "is a ConvTranspose2d. Only ordinary two-dimensional convolutions" in facts["info"]
    assert not facts["canWalk"]
    twice = nn.Conv2d(3, 3, 3, padding=1)  # of which the second call alone leads on
    shared = subject_of(as_model(nn.Sequential(twice, twice, nn.Conv2d(3, 2, 3)).eval()))
    facts = ask(shared, "cell", View(layer="2"), channel=0, row=0, column=0).facts
    assert facts["upstream"] == "0"  # a layer that a link can name


def test_the_weights_are_those_of_that_network() -> None:
    """Two networks of one name in one cache are told apart by their weights."""
    first, second = seeded(Tiny).eval(), seeded(Tiny).eval()
    with torch.no_grad():
        second.conv1.weight *= 2
    plain = Preprocess(resize=16, crop=16)
    one = subject_of(hookviz.wrap(first, plain))
    two = subject_of(hookviz.wrap(second, plain), cache=one.cache)
    cell: dict[str, Any] = {"channel": 0, "row": 4, "column": 4}
    terms = [
        [row["term"] for row in ask(each, "cell", View(layer="conv1"), **cell).facts["rows"]]
        for each in (one, two)
    ]
    np.testing.assert_allclose(terms[1], 2 * np.array(terms[0]), rtol=1e-5)


def test_a_token_of_a_linear_layer_is_its_products_with_their_weights() -> None:
    case = TOKEN_NETWORKS["timm's DeiT"]
    subject = subject_of(model := case.model())
    subject = replace(subject, model_input=hookviz.prepare_input(model, case.image()))
    layer = "blocks.0.mlp.fc1"
    facts = ask(subject, "cell", View(layer=layer), channel=3, row=1, column=2).facts
    module: Any = subject.model.network.get_submodule(layer)
    _, seen = plain_pass(subject.model.network, case.image())
    given, output = (case.maps(each)[0, :, 1, 2].double() for each in seen[layer])
    terms = (module.weight[3].double() * given).detach()
    largest = terms.abs().argsort(descending=True)[:5]
    assert [each["input"] for each in facts["rows"]] == largest.tolist()
    np.testing.assert_allclose([each["term"] for each in facts["rows"]], terms[largest], rtol=1e-6)
    np.testing.assert_allclose(facts["rows"][0]["patch"], [[given[largest[0]]]], rtol=1e-3)
    assert facts["title"] == f"Why {number(float(output[3]))} at row 1, column 2?"
    assert words(facts["sum"]).endswith("as the network computed")
    assert words(facts["steps"][0]).startswith("GELU blocks.0.mlp.act gives ")
    assert (facts["hasKernel"], facts["canWalk"], facts["upstream"]) == (True, False, None)
    kernel = ask(subject, "kernel", View(layer=layer), channel=3).facts
    strongest = [each["input"] for each in kernel["byWeight"]["rows"]]
    assert strongest == module.weight[3].abs().argsort(descending=True)[:6].tolist()
    assert kernel["note"] == ""


def test_a_token_of_a_layer_norm_is_told_with_its_mean_and_deviation() -> None:
    case = TOKEN_NETWORKS["timm's ViT"]
    subject = subject_of(model := case.model())
    subject = replace(subject, model_input=hookviz.prepare_input(model, case.image()))
    layer = "blocks.1.norm1"
    facts = ask(subject, "cell", View(layer=layer), channel=3, row=3, column=5).facts
    module: Any = subject.model.network.get_submodule(layer)
    scale, shift = module.weight.detach(), module.bias.detach()
    _, seen = plain_pass(subject.model.network, case.image())
    given, output = (case.maps(each)[0, :, 3, 5].detach().double() for each in seen[layer])
    mean, variance = number(float(given.mean())), number(float(given.var(correction=0)))
    deviation = number(float(given.std(correction=0)))
    assert facts["title"] == f"Why {number(float(output[3]))} at row 3, column 5?"
    assert facts["rest"] == (
        f"The layer was given {number(float(given[3]))} here. The 8 numbers that it normalises "
        f"together have the mean {mean} and the standard deviation {deviation}."
    )
    assert words(facts["sum"]) == (
        f"({number(float(given[3]))} − {mean}) / √({variance} + 1e-06) × "
        f"{number(float(scale[3]))} + {number(float(shift[3]))} = "
        f"{number(float(output[3]))}, as the network computed"
    )
    assert (facts["rows"], facts["steps"]) == ([], [])
    assert (facts["hasKernel"], facts["canWalk"]) == (False, False)
