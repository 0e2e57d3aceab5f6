"""What a lens answers first, in one sentence, against a computation of its own."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hookviz
from hookviz.drawing.panels import TextPanel
from hookviz.lenses.contract.running import list_lenses
from hookviz.types import Model
from tests.networks import as_model, seeded
from tests.pictures import picture


def answer(slug: str, model: Model, **settings: Any) -> str:
    panel = hookviz.run_lens(slug, model, picture(), **settings).panels[0]
    assert isinstance(panel, TextPanel)
    assert panel.tone == "answer"
    return panel.text


def number_in(text: str) -> float:
    """The last number in a sentence."""
    return float(re.findall(r"\d+(?:\.\d+)?", text)[-1])


class Silent(nn.Module):
    """A convolution of six channels, of which so many are silent after a ReLU."""

    def __init__(self, silent: int, *, scale: float = 1.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(6, 4)
        with torch.no_grad():
            self.conv.bias.fill_(100.0)  # type: ignore[union-attr]
            self.conv.bias[:silent] = -100.0  # type: ignore[index]
            self.head.weight *= scale

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        values = self.pool(self.relu(self.conv(image)))
        return self.head(self.flatten(values))  # type: ignore[no-any-return]


def silent(count: int, *, scale: float = 1.0) -> Model:
    return as_model(seeded(lambda: Silent(count, scale=scale)))


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (0, "Everything works: every unit answers this image."),
        (2, "Everything works: 2 of 6 units stay silent on this image in relu, and fewer"),
        (6, "relu is silent: none of its 6 units answers this image."),
    ],
)
def test_health_says_whether_everything_works(count: int, says: str) -> None:
    assert answer("health", silent(count)).startswith(says)


def test_health_names_where_numbers_break() -> None:
    model = silent(0)
    with torch.no_grad():
        model.network.head.bias[1] = torch.nan  # type: ignore[union-attr, operator]
    assert answer("health", model) == "Numbers break in head."


@pytest.mark.parametrize("scale", [1.0, 13.0, 100.0])
def test_gradient_flow_says_how_fast_the_first_layer_learns(scale: float) -> None:
    model = silent(2, scale=scale)
    strengths = hookviz.run_lens("gradient-flow", model, picture(), target=1).values["strength"]
    ratio = strengths[-1] / strengths[0]
    says = answer("gradient-flow", model, target=1)
    if 1 / 1.5 < ratio < 1.5:
        assert says == "The first layer learns about as fast as the last."
    else:
        assert ("slower" in says) == (ratio > 1)
        assert number_in(says) == pytest.approx(max(ratio, 1 / ratio), rel=6e-3)


def test_gradients_and_saliency_say_what_counts() -> None:
    model = hookviz.load_model("shapesnet")
    result = hookviz.run_lens("gradients", model, picture(), layer="stage1.first.conv", target=2)
    most = int(np.abs(result.values["gradient"]).max((1, 2)).argmax())
    says = answer("gradients", model, layer="stage1.first.conv", target=2)
    assert says.startswith(f"Channel {most} of stage1.first.conv moves the score of ")

    values = np.abs(hookviz.run_lens("saliency", model, picture(), target=2).values["map"]).ravel()
    share = number_in(answer("saliency", model, target=2)) / 100
    count = round(share * values.size)
    values.sort()
    assert values[-count:].sum() == pytest.approx(values.sum() / 2, rel=0.02)


def test_summary_and_trace_name_the_largest_and_the_slowest_layer() -> None:
    model = hookviz.load_model("shapesnet")
    sizes = {
        name: sum(each.numel() for each in module.parameters(recurse=False))
        for name, module in model.network.named_modules()
    }
    largest = max(sizes, key=lambda name: sizes[name])
    share = 100 * sizes[largest] / sum(sizes.values())
    says = answer("summary", model)
    assert says.endswith(f" {share:.3g} % of them in {largest}.")
    assert answer("trace", model).startswith("One pass takes ")
    assert answer("summary", as_model(nn.ReLU())).endswith(
        "has nothing to learn: no layer has weights."
    )


def test_every_lens_begins_with_its_answer() -> None:
    """Or says in colour what is good or wrong; the sentences' numbers are checked below."""
    model = hookviz.load_model("shapesnet")
    few: dict[str, Any] = {"steps": 2, "images": (picture(5),)}
    for lens in list_lenses():
        if lens.slug in {"attention", "segmentation"}:  # which ShapesNet has nothing of
            continue
        own = {parameter.name for parameter in lens.parameters}
        chosen = {name: value for name, value in few.items() if name in own}
        first = hookviz.run_lens(lens.slug, model, picture(), **chosen).panels[0]
        assert isinstance(first, TextPanel), lens.slug
        assert first.tone in {"answer", "good"}, lens.slug


def test_sentences_have_the_numbers_of_the_result() -> None:
    model = hookviz.load_model("shapesnet")
    layer = "stage3.first.conv"
    result = hookviz.run_lens("channels-that-matter", model, picture(), layer=layer, target=2)
    change = result.values["logit_change"]
    most = int(np.abs(change).argmax())
    says = answer("channels-that-matter", model, layer=layer, target=2)
    assert f" channel {most} of {layer} " in says.replace("Channel", " channel")
    assert ("needs" in says) == (change[most] < 0)

    adds = hookviz.run_lens("integrated-gradients", model, picture(), target=2).values["map"]
    share = number_in(answer("integrated-gradients", model, target=2)) / 100
    strongest = np.sort(np.maximum(adds, 0).ravel())[::-1]
    half = strongest[: round(share * adds.size)].sum()
    assert half == pytest.approx(strongest.sum() / 2, rel=0.02)

    run = hookviz.run_lens("dream", model, picture(), layer=layer, steps=3).values
    says = answer("dream", model, layer=layer, steps=3)
    if run["after"] > run["before"]:
        assert number_in(says) == pytest.approx(run["after"] / run["before"], rel=6e-3)

    pruned = hookviz.run_lens("prune-weights", model, picture()).values
    stays = pruned["top"] == pruned["top"][0]
    last = len(stays) - 1 if stays.all() else int(stays.argmin()) - 1
    percent = number_in(answer("prune-weights", model).split(" %")[0])
    assert percent == pytest.approx(100 * pruned["shares"][last])
