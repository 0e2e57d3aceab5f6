from typing import Any

import pytest
import torch

import hookviz
from hookviz.synthesis.settings import NONE, Robustness


def seeded(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def test_none_is_the_same_tensor() -> None:
    pictures = torch.rand(1, 3, 8, 8)
    assert NONE.of(pictures, seeded(0)) is pictures


def test_all_pictures_are_moved_alike_and_each_step_otherwise() -> None:
    pictures = torch.rand(1, 3, 16, 16, generator=seeded(0)).expand(2, 3, 16, 16)
    moved = Robustness().of(pictures, seeded(1))
    assert torch.equal(moved[0], moved[1])
    assert torch.equal(moved, Robustness().of(pictures, seeded(1)))
    assert not torch.equal(moved, Robustness().of(pictures, seeded(2)))


@pytest.mark.parametrize("seed", range(4))
def test_a_shift_is_no_larger_than_it_may_be(seed: int) -> None:
    point = torch.full((1, 1, 33, 33), 0.5)
    point[..., 16, 16] = 1
    moved = Robustness(shift=0.125, scale=0, degrees=0).of(point, seeded(seed))
    rows, columns = torch.meshgrid(torch.arange(33.0), torch.arange(33.0), indexing="ij")
    mass = moved[0, 0] - 0.5
    centre = [float((mass * at).sum() / mass.sum()) for at in (rows, columns)]
    assert 0.1 < max(abs(at - 16) for at in centre) <= 0.125 * 33 + 0.01


def test_what_comes_in_at_the_edge_is_grey() -> None:
    moved = Robustness(shift=0.5, scale=0, degrees=0).of(torch.ones(1, 3, 16, 16), seeded(3))
    assert float(moved.min()) == pytest.approx(0.5)
    assert float(moved.max()) == pytest.approx(1)


def test_an_oblong_picture_is_turned_and_not_sheared() -> None:
    """A disc stays a disc."""
    rows, columns = torch.meshgrid(torch.arange(40.0), torch.arange(80.0), indexing="ij")
    disc = 0.5 + 0.5 * ((rows - 19.5) ** 2 + (columns - 39.5) ** 2 < 100).float()
    turned = Robustness(shift=0, scale=0, degrees=45).of(disc[None, None], seeded(5))
    assert float((turned[0, 0] - disc).abs().mean()) < 0.01


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 8}, "size=8: pictures have 32 to 512"),
        ({"seed": -1}, "seed=-1"),
        ({"space": "fourier"}, "'Fourier'"),
        ({"penalty": "L1"}, "L2"),
        ({"rate": float("nan")}, "rate=nan"),
        ({"diversity": -1.0}, "diversity=-1.0"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(hookviz.HookVizError, match=message):
        hookviz.MaximizationConfig(**given).check()
