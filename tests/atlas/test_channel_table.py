from hookviz.atlas.channel_table import channel_table
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import Model


def test_every_layers_channels_have_their_place(tiny: Model) -> None:
    table = channel_table(layer_trace(tiny, (3, 16, 16)))
    assert table.channels == 10
    assert [(layer.address, layer.rows, layer.cells) for layer in table.layers] == [
        ("conv1", slice(0, 4), (16, 16)),
        ("conv2", slice(4, 10), (7, 7)),
    ]
    assert table.by_address["conv2"].name == "conv2"
