from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import SettingError
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.regions import NOTHING, Region, RegionChoice, region_of
from hookviz.types import Model
from tests.lenses.contract.test_function_targets import a_picture, detector
from tests.networks import Tiny, random_input, seeded


@pytest.fixture
def subject(tiny: Model) -> Subject:
    return Subject(tiny, prepare_input(tiny, random_input(0)), None)


def test_a_rectangle_covers_cells_by_their_share_of_area() -> None:
    # counted in pixels of a picture in which every edge falls between two
    fine = np.zeros((120, 120))
    fine[30:100, 12:66] = 1
    region = Region(f"rect:{12 / 120},{30 / 120},{66 / 120},{100 / 120}")
    for rows, columns in ((1, 1), (4, 4), (3, 5), (120, 60)):
        shares = fine.reshape(rows, 120 // rows, columns, 120 // columns).mean((1, 3))
        np.testing.assert_allclose(region.cover(rows, columns), shares, atol=1e-12)
    assert region.area == pytest.approx(70 * 54 / 120**2)
    one, other = Region("rect:0.7,0.9,0.2,0.1"), Region("rect:.2,.1,.7,.9")  # corners in any order
    np.testing.assert_array_equal(one.cover(7, 9), other.cover(7, 9))


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (32, 20), (7, 1)])
def test_a_mask_comes_back_from_its_text(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    for share in (0, 0.1, 0.5, 0.9, 1):
        mask = rng.random(shape) < share
        region = region_of(mask)
        np.testing.assert_allclose(region.cover(*shape), mask, atol=1e-12)
        np.testing.assert_allclose(region.area, mask.mean(), atol=1e-12)
        assert set(region) <= set("brush:x.0123456789")  # a link holds it as it stands


def test_a_mask_is_laid_over_other_cells_by_area() -> None:
    mask = np.random.default_rng(2).random((12, 8)) < 0.4
    halves = mask.reshape(6, 2, 4, 2).mean((1, 3))
    np.testing.assert_allclose(region_of(mask).cover(6, 4), halves, atol=1e-12)
    finer = mask.repeat(3, 0).repeat(2, 1)
    np.testing.assert_allclose(region_of(mask).cover(36, 16), finer, atol=1e-12)


def test_text_masks_and_nothing_are_taken(subject: Subject) -> None:
    kind = RegionChoice()
    assert kind.resolve(None, subject) == kind.default
    assert kind.resolve(" rect:0,0,1,1 ", subject).area == 1
    mask = np.zeros((16, 16), bool)
    mask[3, 4:6] = True
    assert kind.resolve(mask, subject) == "brush:16x16:52.2"
    assert kind.resolve(torch.from_numpy(mask), subject) == "brush:16x16:52.2"
    assert kind.resolve("brush:2x2:0.1.2.1", subject).cover(2, 2).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "given",
    [
        *("", "middle", "rect:0,0,1", "rect:0,0,2,1", "rect:-1,0,1,1", "rect:nan,0,1,1"),
        *("rect:1e-1,0,1,1", "rect:0,0,1,1,1", "rect:٣,0,1,1", "brush:0x3:1", "brush:2x2:5"),
        *("brush:9999999x9999999:1", "brush:2x2:", "brush:2x2:1..1", 3, [0, 0, 1, 1]),
        *(np.ones((2, 2)), np.ones((2, 2, 2), bool), np.ones((0, 2), bool)),
    ],
)
def test_what_is_no_region_is_refused(given: Any, subject: Subject) -> None:
    with pytest.raises(SettingError, match=r"region.* not a region such as"):
        RegionChoice().resolve(given, subject)


@pytest.mark.parametrize(
    "given", [NOTHING, "rect:.5,0,.5,1", "brush:3x3:9", np.zeros((4, 4), bool)]
)
def test_a_region_that_marks_nothing_is_refused(given: Any, subject: Subject) -> None:
    with pytest.raises(SettingError, match="marks nothing of the picture"):
        RegionChoice().resolve(given, subject)


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
