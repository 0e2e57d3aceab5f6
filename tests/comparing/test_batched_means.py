import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.comparing.batched_means import batched_means, keeps_images_apart
from hookviz.comparing.channel_means import Side, channel_means
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.types import Model, ignore
from tests.networks import as_model, random_input, seeded

SILENT = ProgressReporter(None)


def by_plain_hooks(network: nn.Module, images: Tensor, layers: list[str]) -> list[Tensor]:
    """Return what each layer puts out for each image by itself, float64 ``(N, …)``."""
    seen: dict[str, list[Tensor]] = {name: [] for name in layers}
    hooks = [
        network.get_submodule(name).register_forward_hook(
            lambda _module, _given, output, name=name: seen[name].append(output.double())
        )
        for name in layers
    ]
    with torch.no_grad():
        for image in images:
            network(image[None])
    for hook in hooks:
        hook.remove()
    return [torch.cat(each) for each in seen.values()]


def test_images_together_have_the_means_that_they_have_alone(tiny: Model) -> None:
    images = torch.cat([random_input(seed) for seed in range(5)])
    assert keeps_images_apart(tiny, images[:1], None, SILENT)
    found = batched_means(tiny, images, None, SILENT)
    assert list(found) == ["conv1", "conv2"]
    expected = by_plain_hooks(tiny.network, images, [*found])
    for rows, maps in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(rows, maps.mean((2, 3)), rtol=1e-5, atol=1e-6)


def test_so_have_tokens() -> None:
    model = hookviz.load_model("shapesvit")
    images = torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    layer = next(i.name for i in hookviz.list_layers(model, kind="maps") if i.layout == "tokens")
    assert keeps_images_apart(model, images[:1], [layer], SILENT)
    (rows,) = batched_means(model, images, [layer], SILENT).values()
    (tokens,) = by_plain_hooks(model.network, images, [layer])
    prefix = tokens.shape[1] - 64  # patches of 8 × 8 pixels
    np.testing.assert_allclose(rows, tokens[:, prefix:].mean(1), rtol=1e-5, atol=1e-5)


class Crowd(nn.Module):
    """Takes a number over the whole batch, so that its images are not apart."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.conv(images / images.abs().amax())
        return values


def test_where_images_are_not_apart_they_go_one_by_one() -> None:
    model = as_model(seeded(Crowd))
    images = torch.cat([random_input(seed) for seed in range(5)])
    assert not keeps_images_apart(model, images[:1], None, SILENT)
    side = Side(model, None, None, whole=False)
    listed = {str(number): image[None] for number, image in enumerate(images)}
    result = channel_means(side, side, listed, ignore)
    (maps,) = by_plain_hooks(model.network, images, ["conv"])
    np.testing.assert_allclose(result.a["conv"], maps.mean((2, 3)), rtol=1e-5, atol=1e-6)


def test_nothing_is_told_of_what_has_no_finite_map_for_each(tiny: Model) -> None:
    images = torch.cat([random_input(0), torch.full((1, 3, 16, 16), torch.nan)])
    assert not batched_means(tiny, images, None, SILENT)
    with pytest.raises(hookviz.UnknownLayerError, match="conv1"):
        batched_means(tiny, images, ["conv11"], SILENT)
