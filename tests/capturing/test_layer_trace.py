import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import ref

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import layer_trace, steps_after
from hookviz.hooking.forward_pass import pass_without_data, private_replica
from hookviz.types import FIRST, LAST, ActivationKey, Layout, Model
from tests.networks import Tiny, as_model, seeded


def test_order_is_that_of_the_pass_and_values_that_are_read_are_there() -> None:
    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last, self.dark = nn.Conv2d(4, 2, 1), nn.Conv2d(4, 2, 1)
            self.first = nn.Conv2d(3, 4, 1)

        def forward(self, images: Tensor) -> Tensor:
            first = self.first(images)
            features: Tensor = (self.dark if images.mean().item() > 0 else self.last)(first)
            return features

    names = [layer.name for layer in hookviz.list_layers(as_model(Backwards()))]
    assert names == ["first", "last"]

    class Chosen(nn.Sequential):
        def forward(self, images: Tensor, which: int = 1) -> Tensor:
            found: Tensor = self[which](self[0](images).squeeze(0))
            return found

    network = Chosen(*(nn.Conv2d(number, number + 1, 1) for number in (3, 4)), nn.Conv2d(4, 6, 1))
    layers = hookviz.list_layers(as_model(network))
    assert [layer.output_shape[0] for layer in layers] == [4, 5]
    assert layers[1].input_shape == layers[0].output_shape  # without a batch a whole one
    image = torch.zeros(1, 3, 8, 8)  # examples of one network are traced apart
    models = [hookviz.wrap(network, example=(image, which)) for which in (1, 2)]
    names = [str(layer.name) for each in models for layer in layer_trace(each, (3, 8, 8)).layers]
    assert names == ["0", "1", "0", "2"]


def test_a_trace_is_made_once_and_knows_bytes_and_containers(tiny: Model) -> None:
    seen = layer_trace(tiny, (3, 16, 16))
    assert layer_trace(tiny, (3, 16, 16)) is seen
    assert seen.nbytes["relu"] == (4 * 16 * 16 + 6 * 7 * 7) * 4
    nested = layer_trace(as_model(nn.Sequential(seeded(Tiny))), (3, 16, 16))
    assert nested.calls["0"] == 1
    own = hookviz.wrap(seeded(Tiny), preprocess=lambda _: torch.zeros(3, 8, 8))
    assert own_shape(own) == (3, 224, 224)
    assert hookviz.capture(own, torch.zeros(3, 8, 8))["conv1"].values.shape == (4, 8, 8)


def test_the_steps_after_a_layer_go_up_to_the_next_conv_layer() -> None:
    model = hookviz.load_model("resnet18", "random")
    trace = layer_trace(model, (3, 64, 64))
    steps = [str(step) for step in steps_after(trace, "layer1.0.conv2")]
    assert steps == ["layer1.0.bn2", "layer1.0.relu#1"]  # behind the sum with the shortcut
    assert [str(step) for step in steps_after(trace, "conv1")] == ["bn1", "relu", "maxpool"]
    assert steps_after(trace, "layer4.1.conv2")[-1].layer == "avgpool"
    assert steps_after(trace, "nowhere") == ()

    class Functions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 6, 3)
            self.pool = nn.MaxPool2d(2)

        def forward(self, images: Tensor) -> Tensor:
            maps = self.pool(torch.relu(self.first(images)))
            scores: Tensor = F.gelu(self.pool(self.second(maps))).mean((2, 3))
            return scores

    trace = layer_trace(as_model(seeded(Functions)), (3, 16, 16))
    assert [str(step) for step in steps_after(trace, "first")] == ["relu() after first", "pool"]
    assert [str(step) for step in steps_after(trace, "second")] == ["pool#1", "gelu() after pool"]


def _ends(*after: nn.Module, classes: int = 5) -> nn.Module:
    """A hidden conv layer "0", a second one "2" with a channel per class, and what follows it."""
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, classes, 1), *after)


POOLED = (nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.mark.parametrize(
    "network",
    [
        _ends(*POOLED),
        _ends(nn.ReLU(), *POOLED, nn.Dropout()),
        _ends(*POOLED, nn.Linear(5, 5)),
        _ends(nn.ReLU(), *POOLED, nn.Linear(5, 5, bias=False)),
        _ends(nn.Conv2d(5, 5, 1), *POOLED),
        _ends(nn.ReLU(), nn.Flatten(), nn.Linear(5 * 14 * 14, 5)),
    ],
)
def test_hidden_layers_are_those_whose_channels_are_not_the_classes(network: nn.Module) -> None:
    model = as_model(network)
    trace = layer_trace(model, own_shape(model))
    last = [layer.name for layer in trace.layers if layer.kernel_size][-1]
    maps: list[Tensor] = []

    def keep(_layer: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        maps.append(output.detach().abs().requires_grad_())  # above zero, where no ReLU cuts
        return maps[0]

    hook = network.get_submodule(last).register_forward_hook(keep)
    scores = network.eval()(torch.rand(1, *own_shape(model)))[0]
    hook.remove()
    slopes = [torch.autograd.grad(score, maps, retain_graph=True)[0] for score in scores]
    reach = torch.stack([slope.abs().sum((0, 2, 3)) for slope in slopes])
    each_its_own = bool((reach[~torch.eye(5, dtype=torch.bool)] == 0).all())
    assert (last not in {layer.name for layer in trace.hidden}) == each_its_own
    no_scores = as_model(_ends())  # a map per class
    trace = layer_trace(no_scores, own_shape(no_scores))
    assert trace.scores == 0
    assert trace.hidden == trace.layers
    squeezenet = hookviz.load_model("squeezenet")
    hidden = layer_trace(squeezenet, own_shape(squeezenet)).hidden
    assert hidden[-1].name == "classifier.0"
    assert all(layer.output_shape[0] != 1000 for layer in hidden)


class _Mixes(nn.Module):
    """Convolutions, and a linear layer over their cells; it counts its passes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 6, 3, padding=1), nn.ReLU()
        self.mix, self.last = nn.Linear(6, 6), nn.Conv2d(6, 5, 3)
        self.passes: list[tuple[int, ...]] = []

    def forward(self, images: Tensor) -> Tensor:
        self.passes.append(tuple(images.shape))
        cells = self.mix(self.act(self.conv(images)).movedim(1, -1))
        scores: Tensor = self.last(cells.movedim(-1, 1)).mean((2, 3))
        return scores


def test_what_layers_tell_takes_one_pass_and_the_rest_two_more() -> None:
    network = seeded(_Mixes)
    model, shape = as_model(network), (3, 16, 16)
    trace = layer_trace(model, shape)
    assert [layer.name for layer in trace.convs] == ["conv", "last"]
    assert [layer.name for layer in trace.usual] == ["conv", "last"]
    assert (
        trace.layout_of(ActivationKey("act"))
        == trace.layout_of(ActivationKey("conv"))
        == Layout(FIRST)
    )
    assert trace.taken_layout_of(ActivationKey("last")) == Layout(FIRST)
    assert trace.leaf_calls == dict.fromkeys(("conv", "act", "mix", "last"), 1)
    assert network.passes == [(1, *shape)]
    assert trace.layout_of(ActivationKey("mix")) == Layout(LAST)
    assert [layer.layout for layer in trace.maps] == [FIRST, FIRST, LAST, FIRST]
    assert network.passes == [(1, *shape), (1, 3, 80, 144)]
    hookviz.list_layers(model, input_shape=shape, kind="all")
    assert len(network.passes) == 2
    network = seeded(_Mixes)
    cap = hookviz.capture(as_model(network), torch.zeros(1, *shape), ["conv", "act"])
    assert cap["act"].values.shape == (6, 16, 16)
    assert network.passes == [(1, *shape)], "the pass that traces it is the one that records"


def test_an_iterator_of_layers_is_gone_through_once_and_a_predicate_asked_no_more_later() -> None:
    network, asked = seeded(_Mixes), list[str]()

    def is_conv(name: str, module: nn.Module) -> bool:
        asked.append(name)
        return isinstance(module, nn.Conv2d)

    image = torch.zeros(1, 3, 16, 16)
    assert list(hookviz.capture(network, image, iter(["conv", "act"]))) == ["conv", "act"]
    assert list(hookviz.capture(network, image, is_conv)) == ["conv", "last"]
    assert asked == ["conv", "act", "mix", "last"]


def test_a_trace_keeps_no_network_in_memory() -> None:
    model = as_model(seeded(_Mixes))
    told, left = (layer_trace(model, (3, side, side)) for side in (16, 24))
    assert told.maps
    network = ref(model.network)
    del model
    gc.collect()
    assert network() is None
    assert [layer.name for layer in left.convs] == ["conv", "last"]
    with pytest.raises(ReferenceError, match="keep the model"):
        _ = left.maps


def test_many_who_look_at_once_wait_for_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    own = as_model(seeded(_Mixes))
    trace = layer_trace(own, (3, 16, 16))
    with ThreadPoolExecutor(2) as pool:
        with private_replica(own):  # within which this thread looks too
            looking = [pool.submit(lambda: len(trace.maps)) for _ in range(2)]
            assert len(trace.maps) == 4
        assert [each.result(timeout=20) for each in looking] == [4, 4]
    model, passes = hookviz.load_model("shapesnet"), []

    def counted(*args: Any) -> Any:
        passes.append(args)
        return pass_without_data(*args)

    monkeypatch.setattr("hookviz.capturing.layer_trace.pass_without_data", counted)
    with ThreadPoolExecutor(8) as pool:
        traces = list(pool.map(lambda _: layer_trace(model, (3, 96, 96)), range(8)))
    assert len(passes) == 1
    assert all(trace is traces[0] for trace in traces)
