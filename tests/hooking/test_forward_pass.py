import pytest
import torch

import hookviz
from tests.kinds_of_networks import KINDS


def test_a_norm_of_one_value_is_told_as_the_cause() -> None:
    """Another size would not help, which evaluation mode does."""
    model, image = KINDS["batch norm"].made("batch norm")
    with pytest.raises(hookviz.ModelError, match=r"one value per channel.*Without train=True"):
        hookviz.capture(model, image)
    model, image = KINDS["instance norm"].made("instance norm")
    with pytest.raises(hookviz.ModelError, match=r"one value per channel, .* deviation\.$"):
        hookviz.capture(model, image)


def test_the_size_that_is_named_is_the_one_that_was_found() -> None:
    model, _image = KINDS["of one size"].made("of one size")
    with pytest.raises(hookviz.ModelError, match="thought to be made for"):
        hookviz.capture(model, torch.rand(1, 3, 8, 8))
    hookviz.list_layers(model)  # which searches it
    with pytest.raises(hookviz.ModelError, match=r"It is made for 3×32×32\."):
        hookviz.capture(model, torch.rand(1, 3, 8, 8))


def test_of_several_images_at_once_one_is_offered() -> None:
    model, image = KINDS["two inputs"].made("two inputs")
    many = hookviz.wrap(model.network, example=(image, torch.rand(2, 5)))
    with pytest.raises(hookviz.ModelError):
        hookviz.capture(many, torch.cat([image] * 3))
