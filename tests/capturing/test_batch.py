from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.networks import Tiny, all_hooks, as_model, random_input, seeded
from tests.pictures import picture


def test_each_image_has_the_capture_that_it_has_alone() -> None:
    model = as_model(seeded(Tiny))
    images = [picture(seed) for seed in range(3)]
    together = hookviz.capture_batch(model, images, ["conv1", "relu"], inputs=True)
    assert len(together) == 3
    for image, found in zip(images, together, strict=True):
        alone = hookviz.capture(model, image, ["conv1", "relu"], inputs=True)
        assert list(found) == list(alone) == ["conv1", "relu", "relu#1"]
        assert found.model_input.digest == alone.model_input.digest
        assert found.model_input.picture is not None
        for address in alone:
            torch.testing.assert_close(found[address].values, alone[address].values)
        for ours, theirs in zip(found.layer_inputs, alone.layer_inputs, strict=True):
            assert ours.address == theirs.address
            torch.testing.assert_close(ours.values, theirs.values)
        torch.testing.assert_close(found.logits, alone.logits)
        assert hookviz.make_grid(found["conv1"]).shown == "all 4 channels"
    assert not torch.equal(together[0]["conv1"].values, together[1]["conv1"].values)
    assert all_hooks(model) == 0


def test_a_tensor_of_several_images_and_of_one() -> None:
    model = as_model(seeded(Tiny))
    batch = torch.cat([random_input(seed, 2 + 3) for seed in range(2)])
    found = hookviz.capture_batch(model, batch)
    assert torch.equal(found[1].input, batch[1:])
    (single,) = hookviz.capture_batch(model, batch[:1])
    torch.testing.assert_close(single["conv2"].values, found[0]["conv2"].values)
    assert single.logits is not None
    assert single.logits.shape == (5,)


class Mixes(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values.flatten(0, 1)


@pytest.mark.parametrize(
    ("images", "kind", "said"),
    [
        ([], hookviz.ImageError, "no image in the batch"),
        ([torch.ones(3, 5, 5), torch.ones(3, 6, 5)], hookviz.ImageError, "1×3×5×5 and 1×3×6×5"),
        (torch.ones(2, 3, 5, 5), hookviz.ModelError, "0 has 6×5×5 for 2 images together"),
    ],
)
def test_what_is_no_batch_is_refused(images: Any, kind: type[Exception], said: str) -> None:
    model = as_model(nn.Sequential(Mixes()))
    with pytest.raises(kind, match=said):
        hookviz.capture_batch(model, images, "0")
