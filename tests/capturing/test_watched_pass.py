"""What is seen of a pass, and whether every image runs the same."""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.watched_pass import FirstLook, watch
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.types import Model
from tests.networks import Tiny, as_model, random_input, seeded

IMAGES = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_calls_stand_in_the_order_in_which_they_return() -> None:
    watched = watch(seeded(Tiny).eval(), torch.zeros(1, 3, 16, 16))
    assert [call.layer for call in watched.calls] == ["conv1", "relu", "conv2", "relu", "head"]
    assert watched.calls[0].shapes == {(): (1, 4, 16, 16)}
    assert watched.calls[0].taken == (1, 3, 16, 16)
    assert (watched.scores, watched.shape, watched.is_static) == (5, (3, 16, 16), True)
    assert watched.overwritten == {"conv1", "conv2"}
    assert watched.keeps_batch


class _Does(nn.Module):
    """Makes something of a layer's maps; with torch's own attention beside it where asked."""

    def __init__(self, do: Callable[[Tensor], Any], *, attends: bool = False) -> None:
        super().__init__()
        self.conv, self.do = nn.Conv2d(3, 4, 3), do
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True) if attends else None

    def forward(self, images: Tensor) -> Any:
        maps: Tensor = self.conv(images)
        if self.attention is not None:
            tokens = maps.flatten(2).transpose(1, 2)
            maps = maps + self.attention(tokens, tokens, tokens)[0].mean()
        return self.do(maps)


READS: dict[str, Callable[[Tensor], Any]] = {
    "a comparison": lambda maps: maps if maps.mean() > 0 else -maps,
    "item": lambda maps: maps * maps.mean().item(),
    "a range": lambda maps: [maps for _ in range(int(maps.abs().max()))],
    "an index": lambda maps: maps[:, maps.argmax() % 4],
    "equal": lambda maps: maps * torch.equal(maps, maps),
    "in": lambda maps: maps * (0.0 in maps),
    "a mask": lambda maps: maps[maps > 0],
    "nonzero": lambda maps: maps.nonzero(),
    "unique": lambda maps: maps.unique(),  # type: ignore[no-untyped-call]
    "where": lambda maps: torch.where(maps > 0),
}
EXPORTS: dict[str, Callable[[Tensor], Any]] = {
    "a list": lambda maps: maps * len(maps.tolist()),
    "NumPy": lambda maps: maps * float(maps.detach().numpy().max()),
}
KEEPS: dict[str, Callable[[Tensor], Any]] = {
    "a gate": lambda maps: maps * maps.mean((2, 3), keepdim=True).sigmoid(),
    "where of three": lambda maps: torch.where(maps > 0, maps, -maps),
    "an index of numbers": lambda maps: maps[:, torch.tensor([2, 0])],
    "its shape": lambda maps: maps if maps.shape[2] > 8 else -maps,
    "sparse": lambda maps: maps.to_sparse().to_dense(),
    "vmap": torch.vmap(torch.relu),
    "two rows": lambda maps: maps.view(2, -1),
}


@pytest.mark.parametrize(("name", "attends"), [*product([*READS, *EXPORTS, *KEEPS], (False, True))])
def test_a_pass_that_reads_no_value_is_static(name: str, *, attends: bool) -> None:
    do = (READS | EXPORTS | KEEPS)[name]
    network = seeded(lambda: _Does(do, attends=attends)).eval()
    with torch.no_grad():
        watched = watch(network, IMAGES)
        assert watched.is_static == (name in KEEPS)
        assert name != "two rows" or not watched.keeps_batch
        if name in READS:
            network = seeded(lambda: _Does(torch.inference_mode()(do))).eval()
            assert not watch(network, IMAGES).is_static


def test_attention_computes_as_where_nobody_watches() -> None:
    """Where functions are followed torch's own takes another way, which rounds otherwise."""

    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 32, 3)
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, images: Tensor) -> Tensor:
            tokens = self.conv(images).flatten(2).transpose(1, 2)
            attended: Tensor = self.attention(tokens, tokens, tokens, need_weights=False)[0]
            return attended

    network = seeded(Attends).eval()
    look = FirstLook(lambda: frozenset({"conv"}))
    with torch.no_grad():
        watch(network, IMAGES, look=look)
        assert torch.equal(look.output, network(IMAGES))


def test_each_image_goes_its_own_way_in_inference_mode() -> None:
    class Chooses(nn.Sequential):
        def forward(self, images: Tensor) -> Any:
            with torch.inference_mode():
                return self[int(images.mean() > 0)](images)

    network = Chooses(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)).eval()
    ways = [list(hookviz.capture(network, each)) for each in (IMAGES.abs(), -IMAGES.abs())]
    assert ways == [["1"], ["0"]]


class Article(nn.Module):
    """The network of many articles about hooks, whose activations are no modules."""

    def __init__(self, in_place: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc = nn.Linear(256, 10)
        self.in_place = in_place

    def forward(self, images: Tensor) -> Tensor:
        maps = F.max_pool2d(torch.relu(self.conv1(images)), 2)
        maps = F.max_pool2d(F.relu(self.conv2(maps), inplace=self.in_place), 2)
        scores: Tensor = F.log_softmax(self.fc(maps.flatten(1)), 1)
        return scores


IMAGE = torch.randn(1, 28, 28, generator=torch.Generator().manual_seed(3))
FUNCTIONS = (
    *("relu() after conv1", "max_pool2d() after conv1"),
    *("relu() after conv2", "max_pool2d() after conv2"),
)


def article(in_place: bool = False) -> Model:
    return hookviz.wrap(seeded(lambda: Article(in_place)), example=(IMAGE[None],))


def test_functions_stand_where_the_pass_calls_them() -> None:
    listed = hookviz.list_layers(article(), kind="all")
    names = ["conv1", *FUNCTIONS[:2], "conv2", *FUNCTIONS[2:], "fc"]
    assert [info.name for info in listed] == names
    assert [info.index for info in listed] == list(range(7))
    assert [info.kind for info in listed if info.is_function] == ["ReLU", "MaxPool2d"] * 2
    for before, after in pairwise(listed[:-1]):
        assert after.input_shape == before.output_shape  # the map before and after
    assert listed[2].output_shape == (6, 12, 12)
    assert [info.name for info in hookviz.list_layers(article(), kind="maps")] == names[:-1]
    assert [info.name for info in hookviz.list_layers(article())] == ["conv1", "conv2"]


@pytest.mark.parametrize("in_place", [False, True])
def test_captured_values_are_those_of_plain_calls(in_place: bool) -> None:
    model = article(in_place)
    network = seeded(lambda: Article(False))
    first = network.conv1(IMAGE[None])
    rectified = torch.relu(first)
    second = network.conv2(F.max_pool2d(rectified, 2))
    expected = (rectified, F.max_pool2d(rectified, 2), second.relu())
    cap = hookviz.capture(model, IMAGE, ["conv2", *FUNCTIONS], inputs=True)
    assert list(cap) == [*FUNCTIONS[:2], "conv2", *FUNCTIONS[2:]]
    for name, values in zip(FUNCTIONS, expected, strict=False):
        assert torch.equal(cap[name].values, values[0]), name
    assert torch.equal(cap["conv2"].values, second[0])  # although something writes over it
    assert torch.equal(cap.inputs(FUNCTIONS[2])[0].values, second[0])
    assert torch.equal(cap.inputs(FUNCTIONS[3])[0].values, second.relu()[0])
    assert torch.allclose(cap.logits, network(IMAGE[None])[0])


def test_a_second_call_behind_the_same_layer_has_its_number() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3))
    network.forward = lambda x: F.avg_pool2d(F.avg_pool2d(network[0](x), 2) * 2, 2)  # type: ignore[method-assign]
    name, image = "0.avg_pool2d() after 0", random_input(2)
    cap = hookviz.capture(as_model(nn.Sequential(network)), image, name)
    assert list(cap) == [name, f"{name}#1"]
    first = F.avg_pool2d(network[0](image), 2)
    assert torch.equal(cap[name].values, first[0])
    assert torch.equal(cap[f"{name}#1"].values, F.avg_pool2d(first * 2, 2)[0])


def test_cells_of_a_function_see_what_they_are_made_of() -> None:
    fields = receptive_fields(article(), (1, 28, 28))
    sizes = [(5, 5), (6, 6), (14, 14), (16, 16)]
    assert [fields[name].size for name in FUNCTIONS] == sizes
    with pytest.raises(hookviz.UnknownLayerError, match=r"relu\(\) after conv1"):
        hookviz.capture(article(), IMAGE, "relu() after conv")
    says = r"is a function .* The nearest one is 'conv1'\."
    with pytest.raises(hookviz.SettingError, match=says):
        hookviz.extract_features(article(), [IMAGE], FUNCTIONS[0])


def test_a_pass_ends_at_a_function_and_a_batch_is_taken_apart() -> None:
    model, several = article(), torch.stack([IMAGE, IMAGE * 2])
    one = hookviz.capture(model, IMAGE, FUNCTIONS[0], logits=False)
    assert one.logits is None
    captures = hookviz.capture(model, several, FUNCTIONS[0])
    wanted = torch.relu(model.network.conv1(several))  # type: ignore[operator]
    for capture, values in zip(captures, wanted, strict=True):
        assert torch.allclose(capture[FUNCTIONS[0]].values, values, atol=1e-6)


def test_what_modules_do_themselves_is_listed_once() -> None:
    stack = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Sigmoid())
    vit = models.VisionTransformer(64, 16, 2, 2, 8, 16)
    for network in (stack, models.resnet18(), models.squeezenet1_1(), vit):
        model = hookviz.wrap(seeded(lambda made=network: made))  # type: ignore[misc]
        trace = layer_trace(model, (3, 64, 64))
        assert trace.functions.layers == ()
        assert (trace.shown, trace.listed) == (trace.maps, trace.layers)
        assert trace.recordable == trace.calls


def test_torchs_attention_goes_its_own_way_unwatched() -> None:
    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 8, 4, 4)
            self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, images: Tensor) -> Tensor:
            tokens: Tensor = self.encoder(torch.relu(self.patches(images)).flatten(2).mT)
            return tokens.mean(1)

    trace = layer_trace(as_model(seeded(Attends)), (3, 16, 16))
    assert trace.functions.layers == ()
