import pytest

import hookviz
from hookviz.capturing.list_layers import layout_text
from hookviz.types import LayerInfo, Model


def test_layers_come_in_order_of_execution_with_shapes(tiny: Model) -> None:
    first, second = hookviz.list_layers(tiny)
    assert (first.name, first.index, first.kind, first.calls) == ("conv1", 0, "Conv2d", 1)
    assert (first.input_shape, first.output_shape) == ((3, 16, 16), (4, 16, 16))
    assert first.parameters == 4 * 3 * 9 + 4
    assert (first.kernel_size, first.stride, first.padding) == ((3, 3), (1, 1), (1, 1))
    assert (second.index, second.output_shape, second.stride) == (1, (6, 7, 7), (2, 2))
    assert second.bias
    layers = hookviz.list_layers(tiny, kind="all")
    assert [layer.name for layer in layers] == ["conv1", "relu", "conv2", "head"]
    assert [layer.calls for layer in layers] == [1, 2, 1, 1]
    assert layers[3].output_shape == (5,)
    wide = hookviz.list_layers(tiny, input_shape=(3, 20, 40))
    assert wide[0].output_shape == (4, 20, 40)
    with pytest.raises(hookviz.SettingError, match="'dense'"):
        hookviz.list_layers(tiny, kind="dense")
    with pytest.raises(hookviz.ModelError, match="made for 3×16×16"):
        hookviz.list_layers(tiny, input_shape=(1, 16, 16))


def test_stages_are_the_parts_that_a_person_would_name() -> None:
    stages = [
        layer.stage for layer in hookviz.list_layers(hookviz.load_model("resnet18", "random"))
    ]
    assert list(dict.fromkeys(stages)) == ["conv1", "layer1", "layer2", "layer3", "layer4"]
    vgg = hookviz.list_layers(hookviz.load_model("squeezenet1_1", "random"))
    assert vgg[0].stage == "features.0"
    assert vgg[-1].stage == "classifier"


@pytest.mark.parametrize(
    ("layout", "prefix", "shape", "words"),
    [
        ("channels first", 0, (64, 7, 7), "channels first"),
        ("channels last", 0, (1536, 14, 14), "channels last: 14×14; 1,536 channels"),
        ("tokens", 0, (384, 14, 14), "14×14 patches; 384 channels"),
        ("tokens", 5, (384, 14, 14), "14×14 patches and 5 other tokens; 384 channels"),
        ("windows", 0, (96, 56, 56), "windows of 56×56; 96 channels"),
        ("unknown", 0, (3, 17, 8), "unknown: no map"),
        ("", 0, (1000,), ""),
    ],
)
def test_a_layout_is_said_in_words(
    layout: str, prefix: int, shape: tuple[int, ...], words: str
) -> None:
    options = {"parameters": 0, "layout": layout, "prefix_tokens": prefix}
    layer = LayerInfo("a", "Linear", 0, "a", 1, (3, 8, 8), shape, **options)  # type: ignore[arg-type]
    assert layout_text(layer) == words
