from typing import Any

import numpy as np
import pytest
import torch

from hookviz.capturing.inputs import prepare
from hookviz.errors import SettingError
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.regions import NOTHING, Region, RegionChoice, region_of
from hookviz.types import Model
from tests.networks import random_input


@pytest.fixture
def subject(tiny: Model) -> Subject:
    return Subject(tiny, prepare(tiny, random_input(0)), None)


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
