"""What patches show of layers of tokens and with channels last, against geometry by hand."""

import numpy as np
import pytest

from hookviz.atlas.channel_table import ChannelTable, LayerChannels, channel_table
from hookviz.atlas.patch_fields import PatchFields
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import LAST, Layout, Model
from tests.token_networks import TOKEN_NETWORKS

CELL = (2, 3)


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


def test_windows_behind_each_other_have_their_own_places() -> None:
    case, windows = TOKEN_NETWORKS["timm's Swin"], "layers.0.blocks.0.attn"
    fields = fields_of(case.model(), windows, size=case.size)
    assert fields.of_cells == {windows}
    assert box(fields, windows, case.size) == (8, 12, 12, 16)


def test_without_attention_it_is_what_the_cell_sees() -> None:
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
