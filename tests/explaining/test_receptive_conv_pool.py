"""The rules of windows against the truth: NaN in one row or column comes out where that is seen."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.explaining.test_receptive_rules import Calls, check, conv
from tests.networks import as_model


def back(**options: Any) -> Any:
    def function(images: Tensor) -> Tensor:
        weight = torch.ones(3, 2, 3, 2, dtype=images.dtype, device=images.device)
        return F.conv_transpose2d(images[:, :, ::3, ::3], weight, **options)

    return function


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "3×3": conv(4, (3, 3)),
    "padded": conv(4, (3, 5), padding=(1, 2)),
    "strided": conv(4, (3, 3), stride=(2, 3), padding=1),
    "strided past what it sees": conv(4, (1, 1), stride=2),
    "dilated": conv(4, (3, 2), dilation=(2, 3), padding=(2, 1)),
    "same": conv(4, (4, 3), padding="same", dilation=(1, 2)),
    "valid": conv(4, (4, 3), padding="valid"),
    "grouped": conv(6, (3, 3), groups=3, padding=1),
    "padded more than the kernel": conv(2, (2, 2), padding=4),
    "transposed": back(),
    "transposed, strided": back(stride=2, padding=1, output_padding=1),
    "transposed, dilated": back(stride=(3, 2), dilation=(2, 3)),
    "max pooling": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max pooling, ceiled": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "max pooling, dilated": lambda x: F.max_pool2d(x, (2, 3), dilation=2),
    "mean pooling": lambda x: F.avg_pool2d(x, (3, 2), padding=1),
    "adaptive pooling": lambda x: F.adaptive_avg_pool2d(x, (5, 4)),
    "adaptive pooling to more": lambda x: F.adaptive_max_pool2d(x, (20, 5)),
    "global pooling": lambda x: F.adaptive_avg_pool2d(x, 1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest to less": lambda x: F.interpolate(x, (7, 5)),
    "nearest-exact": lambda x: F.interpolate(x, (7, 19), mode="nearest-exact"),
    "nearest by a factor": lambda x: F.interpolate(x, scale_factor=(1.3, 0.7)),
    "nearest-exact by a factor": lambda x: F.interpolate(
        x, scale_factor=(1.45, 0.8), mode="nearest-exact"
    ),
    "bilinear by a factor": lambda x: F.interpolate(x, scale_factor=(1.45, 0.7), mode="bilinear"),
    "bicubic by a factor": lambda x: F.interpolate(x, scale_factor=(1.45, 0.7), mode="bicubic"),
    "bilinear": lambda x: F.interpolate(x, (9, 20), mode="bilinear"),
    "bilinear, aligned": lambda x: F.interpolate(x, (25, 9), mode="bilinear", align_corners=True),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_box_holds_what_is_seen_and_no_more(name: str) -> None:
    check(as_model(Calls(FUNCTIONS[name])), "inside", (3, 14, 12))
