"""What moves values, against the truth: NaN in one row or column comes out where that is seen."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.explaining.receptive_fields.test_rules import Calls, check, conv
from tests.networks import as_model

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros around": lambda x: F.pad(x, (1, 2, 0, 3)),
    "cropped": lambda x: F.pad(x, (-1, -2, 2, -3)),
    "mirrored around": lambda x: F.pad(x, (2, 1, 3, 2), mode="reflect"),
    "circular": lambda x: F.pad(x, (2, 1, 3, 2), mode="circular"),
    "joined": lambda x: torch.cat([x, conv(3, (3, 3), padding=1)(x)], 1),
    "joined below": lambda x: torch.cat([x, conv(3, (3, 3), padding=1)(x)], 2),
    "flipped": lambda x: x.flip(3).roll(2, 2),
    "turned": lambda x: x.transpose(2, 3),
    "cut": lambda x: x[:, :, 2:-1, ::2],
    "in patches": lambda x: F.pixel_unshuffle(x, 2),
    "shuffled": lambda x: x.view(1, 3, 1, 14, 12).transpose(1, 2).flatten(1, 2).chunk(3, 1)[1],
    "channels last": lambda x: F.linear(
        F.layer_norm(x.permute(0, 2, 3, 1), (3,)), x.new_ones(5, 3)
    ).permute(0, 3, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_box_holds_what_is_seen_and_no_more(name: str) -> None:
    check(as_model(Calls(FUNCTIONS[name])), "inside", (3, 14, 12))
