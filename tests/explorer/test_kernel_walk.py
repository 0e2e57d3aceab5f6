"""A kernel's walk as data: what is sent is enough to compute the map, cell by cell."""

import base64
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explorer.kernel_walk import kernel_walk
from tests.networks import as_model, seeded


def floats(text: str, shape: list[int]) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f4").reshape(shape).copy())


class Grey(nn.Module):
    """A convolution of one input channel, so that its walk over that is all of its sum."""

    def __init__(self, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, stride=stride, padding=padding, dilation=dilation)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.conv(images[:, :1])
        return maps


def walked(stride: int, padding: int, dilation: int, side: int, cell: tuple[int, int]) -> Any:
    model = as_model(seeded(lambda: Grey(stride, padding, dilation)).eval())
    image = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(5))
    return kernel_walk(record_layer_call(model, image, "conv"), 1, 0, cell)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "side"),
    [(1, 1, 1, 12), (2, 1, 1, 13), (1, 2, 2, 12), (3, 0, 2, 20), (1, 1, 1, 300), (2, 3, 2, 700)],
)
def test_walking_over_what_is_sent_gives_the_map(
    stride: int, padding: int, dilation: int, side: int
) -> None:
    facts = walked(stride, padding, dilation, side, (2, 3))
    layer_input = floats(facts["input"], facts["inputSize"])
    kernel = torch.tensor(facts["kernel"])
    came = F.conv2d(
        layer_input[None, None],
        kernel[None, None],
        torch.tensor([facts["bias"]]),
        stride=facts["stride"],
        dilation=facts["dilation"],
    )[0, 0]
    assert list(came.shape) == facts["size"]
    torch.testing.assert_close(came, floats(facts["output"], facts["size"]), rtol=1e-5, atol=1e-5)
    assert facts["others"] == 0


def test_of_a_large_map_the_cells_around_the_chosen_one_are_sent() -> None:
    facts = walked(1, 1, 1, 400, (390, 200))
    (top, left), (rows, columns) = facts["first"], facts["size"]
    assert top <= 390 < top + rows
    assert left <= 200 < left + columns
    assert max(facts["inputSize"]) <= 256
    assert top + rows == 400  # at the edge the window ends with the map


def test_where_the_input_without_its_padding_lies() -> None:
    facts = walked(1, 1, 1, 12, (0, 0))
    top, left, height, width = facts["inside"]
    padded = floats(facts["input"], facts["inputSize"])
    assert (top, left, height, width) == (1, 1, 12, 12)
    assert not padded[0].any()
    assert padded[1:-1, 1:-1].all()
