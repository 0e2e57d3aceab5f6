from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing import recorded_pass
from hookviz.comparing.channel_means import (
    BothMeans,
    Side,
    batched_means,
    channel_means,
    keeps_images_apart,
)
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass
from hookviz.types import Model, ignore
from tests.networks import as_model, hook_count, random_input, seeded
from tests.odd_batches import BatchMaximum
from tests.pictures import encoded, picture
from tests.plain_hooks import every_output

SILENT = ProgressReporter(None)


def means(a: Model, b: Model | None, images: dict[str, Any], *layers: str) -> BothMeans:
    first = Side(a, layers or None, None, whole=False)
    second = first if b is None else Side(b, None, None, whole=False)
    return channel_means(first, second, images, ignore)


def inputs(count: int) -> dict[str, Tensor]:
    return {f"image {seed}": random_input(seed) for seed in range(count)}


def test_a_row_is_the_mean_of_each_channel_over_its_map(tiny: Model) -> None:
    other = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 5, 3))))
    images = inputs(3)
    result = means(tiny, other, images)
    assert (result.names, result.failed) == (tuple(images), {})
    assert (list(result.a), list(result.b)) == (["conv1", "conv2"], ["0"])
    batch = torch.cat([*images.values()])
    with torch.no_grad():
        first = tiny.network.get_submodule("conv1")(batch)
        second = tiny.network.get_submodule("conv2")(first.relu())
        beside = other.network(batch)
    for row, maps in (
        (result.a["conv1"], first),
        (result.a["conv2"], second),
        (result.b["0"], beside),
    ):
        np.testing.assert_allclose(row, maps.mean((2, 3)).numpy(), rtol=1e-5, atol=1e-6)


def test_images_share_passes_and_one_model_alone_runs_once(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []

    def counted(model: Model, replica: nn.Module, images: Tensor, *more: Any) -> Any:
        passes.append(len(images))
        return forward_pass(model, replica, images, *more)

    monkeypatch.setattr("hookviz.comparing.channel_means.forward_pass", counted)
    monkeypatch.setattr(recorded_pass, "forward_pass", counted)
    images = inputs(10) | {"odd": torch.full((1, 3, 16, 16), torch.nan)}
    result = means(tiny, None, images)
    # the first three tell whether images can, and those beside one that can't go alone
    assert passes == [2, 1, 1, 4, 4, 3, 1, 1, 1]
    assert (len(result.names), [*result.failed]) == (10, ["odd"])
    assert "conv1 of Tiny puts out NaN or infinite values for it" in result.failed["odd"]
    assert result.a is result.b
    means(tiny, tiny, inputs(4))
    assert passes[9:] == 2 * [2, 1, 1, 4]


def test_what_cannot_go_through_both_is_left_out_of_both(tiny: Model, tmp_path: Path) -> None:
    other = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 5, 12))))
    (tmp_path / "broken.png").write_bytes(encoded(picture())[:60])
    small = random_input(5, 8)  # of which the other's kernels are larger
    images = {"broken": tmp_path / "broken.png", **inputs(2), "small": small, "bytes": b"?"}
    result = means(tiny, other, images)
    assert result.names == ("image 0", "image 1")
    assert {len(each) for each in (*result.a.values(), *result.b.values())} == {2}
    assert set(result.failed) == {"broken", "small", "bytes"}
    assert "can't take an input of 3×8×8" in result.failed["small"]


class Fickle(nn.Module):
    """Runs its layer once more where the image is bright."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.conv(images)
        if images.mean() > 1:
            values = self.conv(values)
        return values


def test_another_way_through_the_network_is_left_out_and_told() -> None:
    images = inputs(2) | {"bright": random_input(3) + 5}
    result = means(as_model(seeded(Fickle)), None, images)
    assert result.names == ("image 0", "image 1")
    assert "conv#1 has 3 channels for it and 0 for the first image" in result.failed["bright"]


def test_names_that_do_not_exist_and_images_that_are_gone_end_the_run(
    tiny: Model, tmp_path: Path
) -> None:
    with pytest.raises(hookviz.UnknownLayerError, match="conv1"):
        means(tiny, None, inputs(2), "conv11")
    with pytest.raises(hookviz.HookVizError, match="has no conv layer to look at"):
        means(as_model(nn.Sequential(nn.ReLU())), None, inputs(2))
    with pytest.raises(hookviz.ImageError, match=r"There is no image file"):
        means(tiny, None, {"a": tmp_path / "a.png"})
    with pytest.raises(hookviz.HookVizError, match=r"No image went through\. a: There is no"):
        means(tiny, None, {name: tmp_path / f"{name}.png" for name in "ab"})


def test_progress_rises_to_1_and_can_cancel(tiny: Model) -> None:
    shares: list[float] = []
    side, other = (Side(tiny, None, None, whole=False) for _ in range(2))
    images = {**inputs(2), "broken": b"?"}
    channel_means(side, other, images, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1

    class Cancelled(hookviz.HookVizError):
        """Not to be taken for a broken image."""

    def cancel(share: float) -> None:
        if share > 0.3:
            raise Cancelled

    with pytest.raises(Cancelled):
        channel_means(side, other, images, cancel)
    assert hook_count(tiny.network) == 0


def by_plain_hooks(network: nn.Module, images: Tensor, layers: list[str]) -> list[Tensor]:
    """Return what each layer puts out for each image by itself, float64 ``(N, …)``."""
    passes = [every_output(network, image[None]) for image in images]
    return [torch.cat([each[name][0].double() for each in passes]) for name in layers]


def test_so_have_tokens() -> None:
    model = hookviz.load_model("shapesvit")
    images = torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    layer = next(i.name for i in hookviz.list_layers(model, kind="maps") if i.layout == "tokens")
    assert keeps_images_apart(model, images[:1], [layer], SILENT)
    (rows,) = batched_means(model, images, [layer], SILENT).values()
    (tokens,) = by_plain_hooks(model.network, images, [layer])
    prefix = tokens.shape[1] - 64  # patches of 8 × 8 pixels
    np.testing.assert_allclose(rows, tokens[:, prefix:].mean(1), rtol=1e-5, atol=1e-5)


def test_where_images_are_not_apart_they_go_one_by_one() -> None:
    model = as_model(seeded(BatchMaximum))
    images = torch.cat([random_input(seed) for seed in range(5)])
    assert not keeps_images_apart(model, images[:1], None, SILENT)
    side = Side(model, None, None, whole=False)
    listed = {str(number): image[None] for number, image in enumerate(images)}
    result = channel_means(side, side, listed, ignore)
    (maps,) = by_plain_hooks(model.network, images, ["conv2"])
    np.testing.assert_allclose(result.a["conv2"], maps.mean((2, 3)), rtol=1e-5, atol=1e-6)


def test_nothing_is_told_of_what_has_no_finite_map_for_each(tiny: Model) -> None:
    images = torch.cat([random_input(0), torch.full((1, 3, 16, 16), torch.nan)])
    assert not batched_means(tiny, images, None, SILENT)
    with pytest.raises(hookviz.UnknownLayerError, match="conv1"):
        batched_means(tiny, images, ["conv11"], SILENT)
