import re
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from tests.networks import Tiny, as_model, random_input, seeded
from tests.odd_networks import KINDS, ODD


class Unused(Tiny):
    """Has a convolution that no pass runs."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Conv2d(3, 3, 1)


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        (nn.Conv2d, ["conv1", "conv2"]),
        ("conv?", ["conv1", "conv2"]),
        (re.compile(r"conv\d|head"), ["conv1", "conv2", "head"]),
        (lambda name, module: name == "head", ["head"]),
        (["head", nn.ReLU], ["relu", "relu#1", "head"]),
    ],
)
def test_layers_are_chosen_as_observe_chooses_them(layers: Any, found: list[str]) -> None:
    network, image = seeded(Unused), torch.rand(3, 16, 16)
    assert list(hookviz.capture(network, image, layers)) == found
    assert hookviz.capture(network, [image, image], layers).layers == tuple(found)
    names = dict.fromkeys(name.partition("#")[0] for name in found)
    listed = layers if isinstance(layers, list) else [layers]
    assert set(hookviz.extract_features(network, [image], listed)) == set(names)

    class Functional(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            return torch.relu(self.conv1(images))

    own = seeded(Functional)  # a function of the code is chosen by its name
    name = next(info.name for info in hookviz.list_layers(own, kind="all") if info.is_function)
    assert list(hookviz.capture(own, image, ["conv1", name])) == ["conv1", name]


@pytest.mark.parametrize(
    ("layers", "error", "said"),
    [
        ("conv9", UnknownLayerError, "conv9.*conv1"),
        ("layer*", UnknownLayerError, r"layer\*"),
        (re.compile("conv"), UnknownLayerError, "conv"),
        (nn.Conv3d, UnknownLayerError, "Conv3d"),
        ("unused", ModelError, "'unused' of .* is not run"),
        ("unuse?", ModelError, r"runs none of the layers that 'unuse\?' chooses, such as 'unused'"),
        (3, SettingError, "layers=3: a layer goes by its name"),
    ],
)
def test_what_chooses_nothing_is_refused(layers: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        hookviz.capture(seeded(Unused), torch.rand(3, 16, 16), layers)
    network, image = seeded(Unused), torch.rand(3, 16, 16)
    for layer in (["unused"], ["unuse?"], lambda name, _module: name == "unused"):
        with pytest.raises(ModelError, match=r"'unused' of .* is not run"):
            hookviz.extract_features(network, [image], layer)


@pytest.mark.parametrize("name", ["_orig_mod.conv2", "module.conv2", "module._orig_mod.conv2"])
def test_names_of_a_compiled_or_parallel_network_are_taken(name: str) -> None:
    network, image = seeded(Unused), torch.rand(3, 16, 16)
    assert list(hookviz.capture(network, image, name)) == ["conv2"]
    heatmap = hookviz.grad_cam(network, image, layer=name)
    assert (heatmap.values == hookviz.grad_cam(network, image, layer="conv2").values).all()
    compiled: Any = torch.compile(network)
    cap = hookviz.capture(compiled, image)
    assert cap["_orig_mod.conv2"] is cap["conv2"]
    alike = nn.Sequential(OrderedDict(my_orig_mod=nn.Sequential(nn.Conv2d(3, 4, 3))))
    cap = hookviz.capture(alike, image, ["my_orig_mod.0"], logits=False)
    assert cap["my_orig_mod.0"].layer == "my_orig_mod.0"  # a name with the compiler's in it stays


pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is not finished there

IMAGE = random_input(5)


@pytest.mark.parametrize("lens", ["grad-cam", "effective-receptive-field"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Sparse", "a sparse tensor"),
        ("Quantised", "a quantised tensor"),
        ("Nested", "a nested tensor"),
        ("Mapped", "a tensor under torch.vmap"),
    ],
)
def test_where_no_gradient_is_taken_the_layer_and_what_it_puts_out_are_named(
    lens: str, kind: str, said: str
) -> None:
    model = as_model(seeded(KINDS[kind]).eval())
    with pytest.raises(hookviz.ModelError, match=f"Layer 'odd' .* {said}: .* Layer 'conv'"):
        hookviz.run_lens(lens, model, IMAGE, layer=ODD)
    if kind == "Mapped":  # a channel under vmap is not edited as if it were a row
        for options in ({"layer": ODD, "channels": "1"}, {"layer": "conv", "downstream": ODD}):
            with pytest.raises(hookviz.ModelError, match=r"Layer 'odd' .* can't be changed there"):
                hookviz.run_lens("ablate", model, IMAGE, **options)  # type: ignore[arg-type]
