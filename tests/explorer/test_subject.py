"""What a subject keeps, and that its turn is had at once where nobody else computes."""

import gc
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.errors import HookVizError
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject, at_once, make_subject, model_of, own_cache
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.types import Crop, Model
from tests.explorer.asking import ask, cache, subject_of
from tests.networks import Tiny, as_model, seeded


@pytest.fixture
def subject() -> Subject:
    return subject_of(as_model(seeded(Tiny).eval()))


def test_what_was_computed_is_kept_for_this_network_and_image_alone(subject: Subject) -> None:
    made: list[int] = []

    def compute() -> list[int]:
        made.append(len(made))
        return [*made]

    def value(of: Subject, *key: object) -> object:
        return of.cached(*key, compute=compute, size=lambda _: 1000)

    assert value(subject, "x", 1) == value(subject, "x", 1) == [0]
    assert value(subject, "x", 2) == [0, 1]
    other = replace(subject, model_input=replace(subject.model_input, digest="another"))
    assert value(other, "x", 1) == [0, 1, 2]
    assert value(subject, "x", 1) == [0]
    assert subject.cache.used == 3000
    small = replace(subject, cache=cache(0.001))
    first, second = (small.cached("x", compute=object, size=lambda _: 5000) for _ in range(2))
    assert first is not second  # too large to be kept
    assert not small.cache.used


def test_a_turn_is_had_at_once_and_has_no_limit(subject: Subject) -> None:
    shares: list[float] = []
    with at_once("Tiny", "capture", "conv1") as run, run.limit.over_torch():
        report = run.limit.within(run.yielding(shares.append))
        hookviz.capture(subject.model, subject.model_input, progress=report)
    assert shares[-1] == pytest.approx(1)


@pytest.fixture(scope="module")
def shapesnet() -> Model:
    return hookviz.load_model("shapesnet")


def test_an_image_is_shown_with_the_crop_that_the_network_saw(shapesnet: Model) -> None:
    path = samples()[0].path
    subject = make_subject(shapesnet, path)
    given = hookviz.prepare_input(shapesnet, path)
    assert subject.model_input.digest == given.digest
    assert subject.model_input.crop == given.crop
    assert subject.image.digest == hookviz.read_image(path).digest
    assert subject.image_title == path.name
    larger = make_subject(shapesnet, path, size=160)
    assert larger.model_input.tensor.shape[-1] == 160
    seen = hookviz.capture(shapesnet, path).model_input  # what the network saw is an image too
    subject = make_subject(shapesnet, seen)
    assert seen.picture is not None
    assert np.array_equal(subject.image.pixels, seen.picture)
    assert subject.model_input.digest == seen.digest


def test_a_tensor_is_its_own_image_stretched_to_its_range(tiny: Model, noise: Tensor) -> None:
    subject = make_subject(tiny, noise)
    height, width = noise.shape[-2:]
    assert subject.model_input.crop == Crop(0, 0, width, height, height, width)
    assert subject.model_input.digest == hookviz.prepare_input(tiny, noise).digest
    shown = subject.image.pixels
    values = noise.reshape(3, height, width).permute(1, 2, 0)
    wanted = (values - values.min()) / (values.max() - values.min()) * 255
    assert np.abs(shown.astype(float) - wanted.numpy()).max() <= 0.5
    assert (shown.min(), shown.max()) == (0, 255)
    facts = ask(subject, "head").facts
    assert facts["image"] == f"input of 3×{height}×{width}"
    for value in (0.0, float("nan"), float("inf")):
        assert not make_subject(tiny, torch.full_like(noise, value)).image.pixels.any()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv1d(2, 4, 5), (2, 3000)),
        (nn.Conv3d(1, 4, 3), (1, 6, 12, 10)),
        (nn.Conv2d(5, 4, 3), (5, 9, 11)),
    ],
    ids=["sound", "a volume", "five channels"],
)
def test_any_input_is_answered_about(layer: nn.Module, shape: tuple[int, ...]) -> None:
    model = hookviz.wrap(nn.Sequential(layer), example=(torch.zeros(1, *shape),))
    subject = make_subject(model, torch.linspace(-1, 1, torch.Size(shape).numel()).view(shape))
    for question in ("head", "layers", "tiles", "field", "photograph"):
        answer(subject, View(), Question(question))
    assert ask(subject, "channel", channel=1).facts


def test_a_capture_leads_to_its_model(noise: Tensor) -> None:
    model = as_model(seeded(Tiny))
    cap = hookviz.capture(model, noise)
    assert model_of(cap) is model
    del model
    gc.collect()
    with pytest.raises(HookVizError, match="of Tiny is gone"):
        model_of(cap)
    cap = hookviz.capture(hookviz.load_model("shapesnet"), Image.new("RGB", (140, 130)))
    gc.collect()
    assert cap.made_by is not None
    assert cap.made_by() is None
    assert model_of(cap).digest == cap.digest  # of the catalog it is had again


def test_all_that_is_kept_is_bounded_together() -> None:
    one, other = own_cache(), own_cache()
    one.put("a", "b", one.limit)
    other.put("c", "d", other.limit)
    assert one.get("a") is None
    assert other.get("c") == "d"
    other.clear()
