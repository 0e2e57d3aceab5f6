"""Every step of every lesson on eight kinds of networks: no gap in a text, and true numbers."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn
from torchvision.models import ConvNeXt, MobileNetV2, ResNet, SwinTransformer
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.resnet import BasicBlock
from torchvision.models.vgg import make_layers

import hookviz
from hookviz.capturing import inputs
from hookviz.capturing.cache import Budget
from hookviz.errors import HookVizError
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.lessons import prose
from hookviz.lessons.lesson import Lesson, Live, Step
from hookviz.lessons.part import DottedFacts, Fact, LessonScene
from hookviz.models import catalog
from hookviz.types import Preprocess
from hookviz.ui.lessons.catalog import lessons, words_of
from hookviz.ui.lessons.live_part import fits
from hookviz.wording import number

SIDE, CLASSES = 64, 10
BUNDLED = ("shapesnet", "shapesvit", "squeezenet")
RANDOM: Mapping[str, Callable[[], nn.Module]] = {
    "resnet": lambda: ResNet(BasicBlock, [1, 1, 1, 1], num_classes=CLASSES),
    "mobilenet": lambda: MobileNetV2(CLASSES, width_mult=0.25),
    "vgg": lambda: nn.Sequential(
        make_layers([8, "M", 16, "M", 16, "M"]),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten()),
        *(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES)),
    ),
    "swin": lambda: SwinTransformer([4, 4], 24, [2, 2], [3, 6], [4, 4], num_classes=CLASSES),
    "convnext": lambda: ConvNeXt(
        [CNBlockConfig(12, 24, 1), CNBlockConfig(24, None, 1)], num_classes=CLASSES
    ),
}
"""Small networks of torchvision's classes with random weights, as ResNet-18 and so on are."""


@cache
def scene_on(name: str) -> LessonScene:
    """The cat on a network, with a session's cache."""
    if name in RANDOM:
        torch.manual_seed(5)  # 0 is what `untrained` begins at
        model = hookviz.wrap(
            RANDOM[name]().eval(),
            preprocess=Preprocess(SIDE, SIDE),
            categories=[f"class {at}" for at in range(CLASSES)],
            name=name,
        )
    else:
        model = hookviz.load_model(name)
    image = reading.read(next(each.path for each in samples() if each.name == "cat"))
    cached = Budget(10**9).cache(10**9)
    return LessonScene(model, inputs.prepare_input(model, image), image, cached)


def scene_for(lesson: Lesson, name: str) -> LessonScene:
    """The scene that the page shows for a chosen network: the lesson's own where that misfits."""
    scene = scene_on(name)
    if fits(lesson, scene):
        return scene
    own = next(
        each for each in catalog.described_models() if each.title == lesson.defaults["model"]
    )
    return scene_on(own.name)


def facts_on(step: Step, scene: LessonScene) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"above": "red", "below": "blue"}
    for block in step.blocks:
        if isinstance(block, Live):
            try:
                facts |= block.part.facts(scene, block.options)
            except HookVizError:  # the part says why: nothing untrained is beside random weights
                if block.part.name not in REFUSING:
                    raise
                facts = DottedFacts(facts)
    return facts


REFUSING = ("blind-test", "guided", "untrained")  # where nothing untrained can stand beside it
GAP = re.compile(r"(?<![\w…–])(–|nan|inf)(?![\w–])")


@pytest.mark.rest  # minutes on a busy machine
@pytest.mark.parametrize("name", [*BUNDLED, *RANDOM])
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.slug)
def test_no_text_has_a_gap_where_a_number_belongs(lesson: Lesson, name: str) -> None:
    scene = scene_for(lesson, name)
    for step in lesson.steps:
        facts = facts_on(step, scene)
        for words, line in words_of(Lesson("", "", "", 5, (step,))):
            text = re.sub("<[^>]*>", " ", prose.as_html(words, facts, lesson.file, line))
            assert not GAP.search(text), text


def last_sum(scene: LessonScene) -> tuple[torch.Tensor, nn.Linear, torch.Tensor]:
    """What plain hooks see of the last linear layer: its input, itself and its output."""
    network: Any = scene.model.network
    head = [each for each in network.modules() if isinstance(each, nn.Linear)][-1]
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    handle = head.register_forward_hook(lambda _, given, put_out: seen.append((given[0], put_out)))
    with torch.no_grad():
        network(scene.model_input.tensor)
    handle.remove()
    ((given, put_out),) = seen
    return given[0], head, put_out[0]


@pytest.mark.parametrize("name", [*BUNDLED, *RANDOM])
def test_means_times_weights_and_the_bias_are_the_score(name: str) -> None:
    """By plain hooks on the network of the lesson; the text's numbers are among them."""
    lesson = next(each for each in lessons() if each.slug == "from-maps-to-a-class")
    scene = scene_for(lesson, name)
    means, head, scores = last_sum(scene)
    target = int(scores.argmax())
    parts = head.weight[target].detach() * means
    torch.testing.assert_close(parts.sum() + head.bias[target].detach(), scores[target])
    first, second = (facts_on(step, scene) for step in lesson.steps[:2])
    assert first["last_channels"] == second["channels"] == len(means)
    channel = int(first["map_channel"])
    assert first["map_mean"] == number(float(means[channel]))
    top = int(parts.argmax())
    assert second["top_channel"] == top
    assert second["top_part"] == number(float(parts[top]))
    assert second["top_mean"] == number(float(means[top]))
    assert second["top_weight"] == number(float(head.weight[target, top].detach()))
    assert second["score"] == pytest.approx(float(scores[target]), rel=1e-4)
    assert (second["for"], second["against"]) == (
        int((parts > 0).sum()),
        int((parts < 0).sum()),
    )


@pytest.mark.parametrize(
    ("slug", "fitting", "others"),
    [
        (
            "from-maps-to-a-class",
            ("shapesnet", "resnet", "mobilenet", "swin"),
            ("squeezenet", "shapesvit", "vgg"),
        ),
        ("from-patches-to-attention", ("shapesvit",), ("shapesnet", "resnet")),
        ("depth", ("squeezenet", "vgg"), ("shapesvit",)),
    ],
)
def test_a_lesson_keeps_its_network_only_where_its_text_would_not_hold(
    slug: str, fitting: tuple[str, ...], others: tuple[str, ...]
) -> None:
    lesson = next(each for each in lessons() if each.slug == slug)
    names = {*fitting, *others}
    assert {name for name in names if fits(lesson, scene_on(name))} == {*fitting}
