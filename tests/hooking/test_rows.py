from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hookviz.hooking.rows import GrowingRows


def grown(one: Tensor, many: Tensor) -> Tensor:
    one += many
    return one


def less(one: Tensor, many: Tensor) -> Tensor:
    one -= 2 * many
    return one


JOINED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "in place": grown,
    "subtracted in place": less,
    "as a method": lambda one, many: one.mul_(many),
    "beside each other": lambda one, many: torch.cat([one, many], 1),
    "by name": lambda one, many: torch.concat((many, one, many), dim=-1),
    "broadcast": lambda one, many: one * many,
}


@pytest.mark.parametrize("name", JOINED)
def test_one_row_is_joined_to_many_as_to_each(name: str) -> None:
    one, many = torch.rand(1, 3, 4, 4), torch.rand(5, 3, 4, 4)
    kept = one.clone()
    with GrowingRows():
        found = JOINED[name](one, many)
    each = torch.cat([JOINED[name](kept.clone(), row[None]) for row in many])
    assert torch.equal(found, each)


def test_what_fits_already_is_left_alone() -> None:
    same = torch.rand(2, 3)
    with GrowingRows():
        before = same
        same += 1
        assert same is before
        assert torch.cat([torch.rand(1, 3), same]).shape == (3, 3)
        assert torch.cat([torch.rand(4), torch.rand(1)], 0).shape == (5,)
        with pytest.raises(RuntimeError):
            torch.cat([torch.rand(2, 3), torch.rand(4, 3)], 1)
