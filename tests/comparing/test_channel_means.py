from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing import recorded_pass
from hookviz.comparing import batched_means
from hookviz.comparing.channel_means import BothMeans, Side, channel_means
from hookviz.hooking.forward_pass import forward_pass
from hookviz.types import Model, ignore
from tests.networks import as_model, hook_count, random_input, seeded
from tests.pictures import encoded, picture


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


def test_every_call_and_any_layer_has_rows(tiny: Model) -> None:
    result = means(tiny, None, inputs(2), "relu", "head")
    assert {at: each.shape for at, each in result.a.items()} == {
        "relu": (2, 4),
        "relu#1": (2, 6),
        "head": (2, 5),
    }


def test_images_share_passes_and_one_model_alone_runs_once(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []

    def counted(model: Model, replica: nn.Module, images: Tensor, *more: Any) -> Any:
        passes.append(len(images))
        return forward_pass(model, replica, images, *more)

    monkeypatch.setattr(batched_means, "forward_pass", counted)
    monkeypatch.setattr(recorded_pass, "forward_pass", counted)
    images = inputs(10) | {"odd": torch.full((1, 3, 16, 16), torch.nan)}
    result = means(tiny, None, images)
    # the first three tell whether images can, and those beside one that can't go alone
    assert passes == [2, 1, 1, 4, 4, 3, 1, 1, 1]
    assert (len(result.names), [*result.failed]) == (10, ["odd"])
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


def test_nan_is_left_out_and_told(tiny: Model) -> None:
    images = inputs(2) | {"sick": torch.full((1, 3, 16, 16), torch.nan)}
    result = means(tiny, None, images)
    assert result.names == ("image 0", "image 1")
    assert "conv1 of Tiny puts out NaN or infinite values for it" in result.failed["sick"]


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


def test_names_that_do_not_exist_end_the_run(tiny: Model) -> None:
    with pytest.raises(hookviz.UnknownLayerError, match="conv1"):
        means(tiny, None, inputs(2), "conv11")
    with pytest.raises(hookviz.HookVizError, match="has no conv layer to look at"):
        means(as_model(nn.Sequential(nn.ReLU())), None, inputs(2))


def test_where_nothing_goes_through_it_says_why(tiny: Model, tmp_path: Path) -> None:
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
