from typing import Any

import pytest
import torch
from torch import Tensor

from hookviz.capturing.image_axis import parts_by_image

IMAGES = 4
OF_EACH = torch.randn(IMAGES, 3, 5, generator=torch.Generator().manual_seed(0))


def image_by_image(images: Tensor) -> Tensor:
    return images.flatten(0, 1)


def window_by_window(images: Tensor) -> Tensor:
    return images.transpose(0, 1).flatten(0, 1)


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda images: images,
        lambda images: images.transpose(0, 1),
        lambda images: images.movedim(0, 2),
        image_by_image,
        window_by_window,
        lambda images: images.movedim(0, 1).flatten(1, 2),
        lambda images: images.movedim(0, 2).flatten(1, 2),
        torch.squeeze,
        lambda images: images.mean((1, 2)),
    ],
)
@pytest.mark.parametrize("numbers", [[3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 3, 3, 3, 3]])
def test_each_part_is_what_there_is_for_one_image(laid_out: object, numbers: list[int]) -> None:
    assert callable(laid_out)
    other = OF_EACH[numbers]  # ends with the last image
    parts: Any = parts_by_image(laid_out(OF_EACH), IMAGES, laid_out(other), len(other))
    for number, part in enumerate(parts):
        alone = laid_out(OF_EACH[[number]])
        assert torch.equal(part.reshape(alone.shape), alone)
        assert part.shape == alone.shape or laid_out is torch.squeeze


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda images: images.mean(0),
        lambda _images: torch.ones(IMAGES, 5),
        lambda images: torch.tensor(float(len(images))),
        lambda images: images.mean(1) @ images.mean(1).T,
        lambda images: images.new_zeros(len(images) + 1, 5),
        lambda images: torch.cat([images.mean(0, keepdim=True), images]),
        lambda images: images.roll(1, 0).flatten(0, 1),
    ],
)
def test_what_has_no_part_for_each_is_none(laid_out: object) -> None:
    assert callable(laid_out)
    assert parts_by_image(laid_out(OF_EACH), IMAGES, laid_out(OF_EACH[-1:]), 1) is None


def test_of_two_axes_as_long_as_the_batch_the_values_tell() -> None:
    """For one image its network drops the batch."""
    square = torch.randn(IMAGES, IMAGES, 2, generator=torch.Generator().manual_seed(1))
    parts: Any = parts_by_image(square, IMAGES, square[:, -1], 1)
    assert all(torch.equal(part, square[:, number]) for number, part in enumerate(parts))
