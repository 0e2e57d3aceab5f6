import numpy as np
import pytest
import torch

import hookviz
from hookviz.drawing.dimensions import as_maps, middle_maps, middle_slice
from hookviz.types import FIRST, Activation, ActivationKey, Layout


def activation(*shape: int) -> Activation:
    values = torch.arange(float(np.prod(shape))).reshape(shape)
    return Activation(ActivationKey("conv"), values, Layout(FIRST))


def test_sound_is_a_strip_for_each_channel_and_rows_of_heads_are_none() -> None:
    sound = activation(6, 50)
    grid = hookviz.make_grid(sound, sort="max", top=3)
    assert grid.shape == (6, 1, 50)
    assert grid.order.tolist() == [5, 4, 3]
    assert grid.legend.startswith("Each strip is a channel, from left to right")
    assert grid.geometry.tile_width == 50
    assert grid.stats.maximum.tolist() == sound.values.amax(1).tolist()
    assert grid.png()[1:4] == b"PNG"
    heads = activation(2, 4, 5, 6, 7)  # (heads, C, T, H, W), as MViT's pooling convolutions put out
    for draw in (hookviz.make_grid, lambda each: middle_maps(each.values)):
        with pytest.raises(hookviz.HookVizError, match="2×4×5×6×7 numbers are of several images"):
            draw(heads)


def test_a_volume_is_drawn_by_its_slices() -> None:
    volume, maps = activation(4, 5, 6, 7), activation(4, 5, 6).values.numpy()
    grid = hookviz.make_grid(volume, depth=3)
    assert grid.shape == (4, 6, 7)
    assert grid.legend.startswith("Slice 3 of 5 in depth")
    assert np.array_equal(grid.levels, hookviz.make_grid(volume.values[:, 3]).levels)
    assert hookviz.make_grid(volume.values, depth=0).shape == (4, 6, 7)
    with pytest.raises(hookviz.HookVizError, match="depth="):
        hookviz.make_grid(volume)
    for depth in (-1, 5, True, "2"):
        with pytest.raises(hookviz.SettingError, match="a slice of this volume, 0 to 4"):
            as_maps(volume.values.numpy(), depth)  # type: ignore[arg-type]
    with pytest.raises(hookviz.SettingError, match="it is for volumes"):
        hookviz.make_grid(maps, depth=1)
    drawn, about = as_maps(maps, None)
    assert (drawn is maps, about) == (True, "")


def test_what_is_shown_of_an_activation_are_maps() -> None:
    volume, image, sound = (torch.randn(shape) for shape in ((4, 5, 6, 7), (4, 6, 7), (4, 9)))
    assert torch.equal(middle_maps(volume), volume[:, 2])
    assert torch.equal(middle_maps(image), image)
    assert torch.equal(middle_maps(sound), sound[:, None])
    assert [middle_slice(tuple(each.shape)) for each in (volume, image, sound)] == [2, None, None]


@pytest.mark.parametrize("shape", [(2, 17, 8), (17, 8)])
def test_what_has_no_known_rows_and_columns_is_drawn_and_says_so(shape: tuple[int, ...]) -> None:
    grid = hookviz.make_grid(Activation(ActivationKey("q_norm"), torch.rand(shape)))
    assert grid.shape[0] == shape[0]
    assert grid.legend.startswith(f"This is no map: of {'×'.join(map(str, shape))} nobody knows")
    assert "no map" not in hookviz.make_grid(activation(*shape)).legend
