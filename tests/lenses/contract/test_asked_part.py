"""A class within a region, one box of several, likeness to an image: beside plain autograd."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.lenses.contract.test_function_targets import a_picture, detector
from tests.networks import Tiny, random_input, seeded

CORNER = "rect:0.25,0.5,1,0.75"  # of 16 × 16 cells the columns from 4 and the rows 8 to 11


def mapping(classes: int = 3) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, classes, 1))


def saliency_of(network: nn.Module, image: Tensor, target: Any) -> Any:
    """The largest of each pixel's absolute gradients (Simonyan et al., 2014)."""
    leaf = image.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(target(network(leaf)), leaf)
    return gradient[0].abs().amax(0).numpy()


def mask() -> Any:
    marked = np.zeros((32, 32), bool)
    marked[16:24, 8:] = True
    return marked


@pytest.mark.parametrize("region", [CORNER, mask()], ids=["rectangle", "mask"])
def test_a_class_is_asked_about_within_a_region(region: Any) -> None:
    network, image = seeded(mapping).eval(), random_input(1, side=16)
    model = hookviz.wrap(network, output="maps", categories=["sky", "cat", "grass"])
    result = hookviz.run_lens("saliency", model, image, target="cat", region=region)

    def of_cat(maps: Tensor) -> Tensor:
        return maps[0, 1, 8:12, 4:].mean()

    np.testing.assert_allclose(
        result.values["map"], saliency_of(network, image, of_cat), rtol=1e-5, atol=1e-9
    )
    score = float(of_cat(network(image)).detach())
    assert float(result.values["value"]) == pytest.approx(score, rel=1e-5)
    assert "within the region alone: cat" in str(result)
    assert result.chosen["region"]
    likeliest = hookviz.run_lens("saliency", model, image, region=region).chosen["target"]
    assert likeliest == int(network(image)[0, :, 8:12, 4:].mean((1, 2)).argmax())


def test_one_logit_a_pixel_is_asked_about_for_and_against() -> None:
    network, image = seeded(lambda: mapping(1)).eval(), random_input(1, side=16)
    model = hookviz.wrap(network, output="binary", categories=["well", "ill"])
    against, speaks = (
        float(
            hookviz.run_lens("saliency", model, image, target=name, region=CORNER).values["value"]
        )
        for name in ("well", "ill")
    )
    assert (
        speaks
        == -against
        == pytest.approx(float(network(image)[0, 0, 8:12, 4:].mean().detach()), rel=1e-5)
    )


@pytest.mark.by_day
def test_the_box_that_overlaps_the_region_most_is_asked_about() -> None:
    network, image = seeded(detector).eval(), a_picture()
    answer: Any = hookviz.capture(network, image, ()).answer
    assert answer.boxes is not None
    with torch.no_grad():
        found = network(image)[0]
    torch.testing.assert_close(answer.boxes[:, :4] * 64, found["boxes"])
    torch.testing.assert_close(answer.boxes[:, 5], found["scores"])
    at = 5
    edges = answer.boxes[at, :4].clamp(0, 1).tolist()
    region = "rect:" + ",".join(f"{edge:.6f}" for edge in edges)
    label = int(answer.boxes[at, 4])
    result = hookviz.run_lens("saliency", network, image, target=label, region=region)
    expected = saliency_of(network, image, lambda boxes: boxes[0]["scores"][at])
    assert expected.any()
    np.testing.assert_allclose(result.values["map"], expected, rtol=1e-4, atol=1e-9)
    assert "box that overlaps the region the most" in str(result)
    nowhere = hookviz.run_lens("saliency", network, image, target=0, region=region)
    assert float(nowhere.values["value"]) == 0, "the background has no box"


def test_likeness_is_the_cosine_of_the_two_vectors() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    image, other = random_input(1, side=16), random_input(2, side=16)
    model = hookviz.wrap(seeded(lambda: network).eval(), output="embedding")
    result = hookviz.run_lens("saliency", model, image, like=other)
    vector = network(other).detach()

    def cosine(out: Tensor) -> Tensor:
        return torch.cosine_similarity(out, vector)[0]

    np.testing.assert_allclose(
        result.values["map"], saliency_of(network, image, cosine), rtol=1e-4, atol=1e-9
    )
    assert float(result.values["value"]) == pytest.approx(float(cosine(network(image)).detach()))
    same = hookviz.run_lens("saliency", model, image, like=image)
    assert float(same.values["value"]) == pytest.approx(1)
    for row in (vector, vector[0].numpy()):
        by_vector = hookviz.run_lens("saliency", model, image, like=row)
        np.testing.assert_array_equal(by_vector.values["map"], result.values["map"])
    with pytest.raises(hookviz.HookVizError, match="a vector of 3 numbers"):
        hookviz.run_lens("saliency", model, image, like=torch.ones(3))


def test_what_has_no_such_part_is_refused_in_words() -> None:
    classifier = hookviz.wrap(seeded(Tiny), output="logits")
    with pytest.raises(hookviz.HookVizError, match="a score per class"):
        hookviz.run_lens("saliency", classifier, random_input(1), region=CORNER)
    with pytest.raises(hookviz.HookVizError, match="a score per class"):
        hookviz.run_lens("saliency", classifier, random_input(1), like=random_input(2))
    maps = hookviz.wrap(seeded(mapping), output="maps")
    for wrong in ("rect:0,0,0,0", "here", np.ones((4, 4))):
        with pytest.raises(hookviz.HookVizError, match="region"):
            hookviz.run_lens("saliency", maps, random_input(1, side=16), region=wrong)
    sound = torch.zeros(1, 3, 30)
    steps = hookviz.wrap(nn.Sequential(nn.Conv1d(3, 2, 5)), example=(sound,), output="maps")
    with pytest.raises(hookviz.HookVizError, match="answers 3×30 with"):
        hookviz.run_lens("saliency", steps, sound, region=CORNER)
    with pytest.raises(hookviz.HookVizError, match="no parameter 'region'"):
        hookviz.run_lens("summary", maps, random_input(1, side=16), region=CORNER)
