import io

import numpy as np
import pytest
from PIL import Image

from hookviz.atlas.patches import Box, Original, PatchFields, boxes_in_original, decode_patch
from hookviz.atlas.plan import ChannelTable, LayerChannels, channel_table
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import HookVizError
from hookviz.types import LAST, Crop, Layout, Model, Pixels
from tests.pictures import encoded, picture
from tests.token_networks import TOKEN_NETWORKS

CELL = (2, 3)


PIXELS = np.asarray(picture(3, width=300, height=200))


def fields_of(model: Model, *names: str, size: tuple[int, int]) -> PatchFields:
    shape = (3, *size)
    return PatchFields(model, channel_table(layer_trace(model, shape), names, shape))


def box(fields: PatchFields, name: str, size: tuple[int, int]) -> tuple[float, ...]:
    return box_of(fields, fields._table.by_address[name], CELL, (3, *size))


def box_of(
    fields: PatchFields, layer: LayerChannels, cell: tuple[int, int], shape: tuple[int, ...]
) -> tuple[float, ...]:
    """Of one cell, asked for between two others that lie elsewhere."""
    others = (0, 0), (99, 0)  # a cell that such a layer has not
    cells = np.array([others[0], cell, others[1]], np.int32)
    together = fields.boxes(layer, cells, shape)
    assert tuple(together[2]) == (0, 0, *shape[-2:])
    return tuple(together[1].tolist())


@pytest.mark.parametrize("name", ["timm's DeiT", "torchvision's Swin", "timm's Swin"])
def test_behind_attention_it_is_the_cells_own_place(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    before, _, behind = case.layers  # the first norm, and one of the second block
    fields = fields_of(case.model(), case.convs, before, behind, size=case.size)
    assert fields.of_cells == {behind}
    for layer in (before, behind):  # patches of 4 pixels, which the embedding does not mix
        assert box(fields, layer, case.size) == (8, 12, 12, 16)


def test_windows_and_cells_without_attention_have_what_they_see() -> None:
    case, windows = TOKEN_NETWORKS["timm's Swin"], "layers.0.blocks.0.attn"
    fields = fields_of(case.model(), windows, size=case.size)
    assert fields.of_cells == {windows}
    assert box(fields, windows, case.size) == (8, 12, 12, 16)
    case = TOKEN_NETWORKS["ConvNeXt"]
    fields = fields_of(case.model(), *case.layers, size=case.size)
    assert fields.of_cells == set()
    for layer in case.layers:  # 7×7 cells of 4 pixels, as far as there are any
        assert box(fields, layer, case.size) == (0, 0, 16, 24)
        first = fields._table.by_address[layer]
        assert box_of(fields, first, (0, 0), (3, *case.size)) == (0, 0, 16, 16)


def test_of_unknown_fields_tokens_have_their_places_and_convolutions_all(tiny: Model) -> None:
    shape = (2, 16, 24)  # which that network can't take
    conv = LayerChannels("conv1", 0, 4, (4, 6))
    linear = LayerChannels("linear", 4, 5, (4, 6), layout=Layout(LAST))
    fields = PatchFields(tiny, ChannelTable((conv, linear), shape))
    assert fields.of_cells == {"linear"}
    assert box_of(fields, linear, CELL, shape) == (8, 12, 12, 16)
    assert box_of(fields, conv, CELL, shape) == (0, 0, 16, 24)


def box_in_original(field: tuple[float, ...], crop: Crop | None, image: Pixels) -> Box | None:
    nothing = (5.0, 5.0, 5.0, 9.0)
    first, box, last = boxes_in_original(np.array([nothing, field, nothing]), crop, image)
    assert first is last is None
    return box


def test_a_field_lies_in_the_original_where_the_crop_says() -> None:
    crop = Crop(left=50.0, top=0.0, right=250.0, bottom=200.0, height=100, width=100)
    assert box_in_original((0, 0, 100, 100), crop, PIXELS) == (0, 50, 200, 250)
    assert box_in_original((10, 20, 13, 21), crop, PIXELS) == (20, 90, 26, 92)
    fine = Crop(left=0.0, top=0.0, right=30.0, bottom=20.0, height=64, width=96)
    assert box_in_original((1, 1, 2, 2), fine, PIXELS) == (0, 0, 1, 1)
    beyond = Crop(left=-100.0, top=-100.0, right=400.0, bottom=300.0, height=50, width=50)
    assert box_in_original((0, 0, 50, 50), beyond, PIXELS) == (0, 0, 200, 300)
    assert box_in_original((0, 0, 5, 5), beyond, PIXELS) is None  # black beside the image
    assert box_in_original((0, 0, 0, 0), crop, PIXELS) is None
    assert box_in_original((4, 4, 5, 5), None, PIXELS) == (0, 0, 200, 300)


def test_a_small_part_is_kept_to_the_pixel_and_a_large_one_shrunk() -> None:
    original = Original(PIXELS)
    small = decode_patch(original.cut((7, 9, 8, 25), 64), 64, "patch")
    np.testing.assert_array_equal(small, PIXELS[7:8, 9:25])
    for box in ((0, 0, 200, 300), (13, 21, 180, 160), (1, 2, 199, 103)):
        top, left, bottom, right = box
        cut = decode_patch(original.cut(box, 48), 48, "patch")
        assert max(cut.shape[:2]) == 48
        ratio = (right - left) / (bottom - top)
        assert abs(cut.shape[1] / cut.shape[0] - ratio) < 0.05 * ratio
        part = Image.fromarray(PIXELS[top:bottom, left:right])
        expected = np.asarray(part.resize((cut.shape[1], cut.shape[0]), Image.Resampling.BOX))
        assert np.abs(cut.astype(int) - expected).mean() < 6  # of 255: JPEG, and another filter


def test_what_is_no_patch_is_refused() -> None:
    large = encoded(Image.new("L", (9000, 9000)), "PNG")
    bitmap = io.BytesIO()
    picture().save(bitmap, "BMP")
    for data in (
        large,
        bitmap.getvalue(),
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        large[:99],
    ):
        with pytest.raises(HookVizError):
            decode_patch(data, 64, "patch")
