import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import hookviz
from tests.networks import Tiny, seeded


def scripted() -> nn.Module:
    module: nn.Module = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3)))
    return module


def traced() -> nn.Module:
    module: nn.Module = torch.jit.trace(  # type: ignore[no-untyped-call]
        nn.Sequential(nn.Conv2d(3, 4, 3)), torch.zeros(1, 3, 8, 8)
    )
    return module


def sparse() -> nn.Module:
    layer = nn.Linear(4, 4)
    layer.weight = nn.Parameter(torch.eye(4).to_sparse())
    return nn.Sequential(layer)


def quantised() -> nn.Module:
    from torch.ao.nn.quantized import Conv2d  # noqa: PLC0415

    return nn.Sequential(Conv2d(3, 4, 3))  # type: ignore[no-untyped-call]


def on_meta() -> nn.Module:
    return seeded(Tiny).to("meta")


UNSUITABLE: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "scripted": (scripted, "Sequential is a scripted TorchScript module.*scripted from"),
    "traced": (traced, "Sequential is a traced TorchScript module.*traced from"),
    "lazy": (lambda: nn.Sequential(nn.LazyConv2d(4, 3)), "is lazy: .* 0.weight .*run the module"),
    "meta": (on_meta, "Tiny is on the meta device.*to_empty"),
    "sparse": (sparse, "sparse tensor in 0.weight.*to_dense"),
    "quantised": (quantised, "is quantised .layer '0'.*wrap the float module"),
}
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is about to go


@pytest.mark.parametrize(("build", "reason"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_what_cannot_be_looked_at_is_named_with_what_to_do(
    build: Callable[[], nn.Module], reason: str
) -> None:
    with pytest.raises(hookviz.ModelError, match=reason):
        hookviz.wrap(build())


def test_what_follows_the_advice_is_taken() -> None:
    lazy = nn.Sequential(nn.LazyConv2d(4, 3))
    lazy(torch.zeros(1, 3, 8, 8))
    assert hookviz.list_layers(hookviz.wrap(lazy))
    on_meta = copy.deepcopy(seeded(Tiny)).to("meta").to_empty(device="cpu")
    on_meta.load_state_dict(seeded(Tiny).state_dict())
    assert hookviz.wrap(on_meta).digest == hookviz.wrap(seeded(Tiny)).digest


@pytest.mark.parametrize(
    ("inside", "key", "said"),
    [
        (False, "a.b", r"Sequential has a module called 'a\.b': names with a dot"),
        (True, "a.b", r"Sequential has a module called 'a\.b' in 1: names with a dot"),
        (True, "", r"Sequential has a module called '' in 1: .* without a letter"),
    ],
)
def test_a_name_that_stands_for_another_layer_is_told(*, inside: bool, key: str, said: str) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.ReLU()))
    (network[1] if inside else network)._modules[key] = nn.Conv2d(4, 4, 1)
    with pytest.raises(hookviz.ModelError, match=said):
        hookviz.wrap(network)


@pytest.mark.parametrize("build", [scripted, traced])
def test_a_script_among_other_layers_is_one_of_them(build: Callable[[], nn.Module]) -> None:
    network = nn.Sequential(nn.Conv2d(3, 3, 1), build())
    model = hookviz.wrap(network, hookviz.Preprocess(16, 16))
    names = [layer.name for layer in hookviz.list_layers(model, kind="all")]
    assert names == ["0", "1"]
    image = torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        theirs = network(image)[0]
    torch.testing.assert_close(hookviz.capture(model, image, "1")["1"].values, theirs)
