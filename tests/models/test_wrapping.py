import copy
import gc
import threading
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.models.wrapping import as_model
from tests.networks import Tiny, hook_count, random_input, seeded
from tests.pictures import picture
from tests.repositories import LABELS, vit


def test_wrap_runs_nothing_and_copies_nothing() -> None:
    module = seeded(Tiny).train()
    calls: list[object] = []
    module.register_forward_pre_hook(lambda *given: calls.append(given))
    before = torch.get_rng_state()
    model = hookviz.wrap(module, categories=list("abcde"))
    assert model.network is module
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    assert (calls, hook_count(module)) == ([], 1)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.categories == tuple("abcde")


def test_a_module_is_the_same_model_while_somebody_keeps_it() -> None:
    module = seeded(Tiny)
    model = as_model(module)
    assert as_model(module) is model
    assert as_model(model) is model
    program: Any = torch.compile(module, backend="eager")
    assert as_model(program).network is module
    assert as_model(seeded(Tiny)) is not model
    gone = ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_wrap_refuses_what_is_no_module() -> None:
    for wrong, kind in ((digits, "function"), (3, "int"), (Tiny, "type")):
        with pytest.raises(hookviz.ModelError, match=f"not {kind}"):
            hookviz.wrap(wrong)  # type: ignore[arg-type]


class Locked(nn.Module):
    """A network that nothing can copy."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.lock = threading.Lock()

    def forward(self, images: Tensor) -> Tensor:
        with self.lock:
            maps: Tensor = self.conv(images)
        return maps


def test_a_network_that_cant_be_copied_is_looked_at() -> None:
    network = seeded(Locked)
    found = hookviz.capture(network, random_input(1))["conv"].values
    assert torch.equal(found, network.conv(random_input(1))[0].detach())


def test_wrap_gives_a_model_back(tiny: hookviz.Model) -> None:
    assert hookviz.wrap(tiny) is tiny
    changed = hookviz.wrap(tiny, categories=list("vwxyz"), name="mine")
    assert (changed.categories, changed.name, changed.title) == (tuple("vwxyz"), "mine", "mine")
    assert changed.network is tiny.network
    assert changed.preprocess is tiny.preprocess


def pooled(channels: int) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def digits() -> nn.Module:
    """A LeNet: it takes 28×28 and nothing else."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 10)),
    )


def test_the_first_conv_layer_says_how_many_channels_a_network_takes() -> None:
    colour, grey = (hookviz.wrap(seeded(pooled(channels))) for channels in (3, 1))
    assert colour.preprocess == hookviz.Preprocess(resize=256, crop=224)
    assert grey.preprocess == hookviz.Preprocess(resize=256, crop=224, mean=(0.5,), std=(0.5,))
    seen = hookviz.capture(grey, picture())
    assert seen.input.shape == (1, 1, 224, 224)
    assert seen["0"].values.shape == (4, 222, 222)
    assert -1 <= seen.input.min() < seen.input.max() <= 1


def test_a_network_of_one_size_is_looked_at_in_that_size() -> None:
    model = hookviz.wrap(seeded(digits))
    assert hookviz.prepare(model, picture()).tensor.shape == (1, 1, 28, 28)
    assert model.preprocess == hookviz.Preprocess(resize=28, crop=28, mean=(0.5,), std=(0.5,))
    assert [layer.output_shape for layer in hookviz.list_layers(model)] == [
        (6, 28, 28),
        (16, 10, 10),
    ]
    assert len(hookviz.capture(model, picture()).predictions(3)) == 3


def test_other_channel_counts_take_tensors_and_say_so() -> None:
    model = hookviz.wrap(seeded(pooled(5)))
    assert [layer.input_shape for layer in hookviz.list_layers(model)] == [(5, 224, 224)]
    with pytest.raises(hookviz.HookVizError, match=r"takes 5 channels.*tensor"):
        hookviz.capture(model, picture())
    assert hookviz.capture(model, torch.randn(5, 40, 40))["0"].values.shape == (4, 38, 38)

    def five(image: Any) -> Tensor:
        return torch.ones(5, *reversed(image.size))

    own = hookviz.wrap(seeded(pooled(5)), five)
    assert hookviz.capture(own, picture())["0"].values.shape == (4, 28, 38)


def test_a_networks_own_failures_are_told_by_the_first_look() -> None:
    class Never(nn.Module):
        def forward(self, _: Tensor) -> Tensor:
            raise LookupError("of its own")

    model = hookviz.wrap(Never())
    assert model.preprocess == hookviz.Preprocess(resize=256, crop=224)
    with pytest.raises(hookviz.ModelError, match="of its own"):
        hookviz.capture(model, picture())


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ("cat", "no sequence of labels"),
        (5, "no sequence of labels"),
        ([0, 1, 2, 3, 4], "holds 0, which is no text"),
    ],
)
def test_categories_are_labels(labels: Any, reason: str, tiny: hookviz.Model) -> None:
    for module in (seeded(Tiny), tiny):
        with pytest.raises(hookviz.ModelError, match=reason):
            hookviz.wrap(module, categories=labels)


def test_categories_are_one_label_per_class(tiny: hookviz.Model) -> None:
    for module in (seeded(Tiny), tiny):
        model = hookviz.wrap(module, categories=["cat", "dog"])
        with pytest.raises(hookviz.ModelError, match="2 labels, and Tiny puts out 5 classes"):
            hookviz.capture(model, random_input(1))


def test_labels_are_taken_where_nobody_knows_how_many_classes_there_are() -> None:
    maps = hookviz.wrap(
        nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(2)), categories=["a", "b", "c"]
    )
    assert hookviz.capture(maps, random_input(1)).categories == ("a", "b", "c")


@pytest.mark.parametrize("build", [lambda: nn.Conv2d(3, 8, 3), lambda: nn.ConvTranspose2d(3, 8, 3)])
def test_a_single_layer_is_called_0(build: Callable[[], nn.Module]) -> None:
    layer = seeded(build)
    model = hookviz.wrap(layer)
    assert (model.title, model.network[0].weight.shape) == (  # type: ignore[index]
        type(layer).__name__,
        layer.weight.shape,
    )
    assert [each.name for each in hookviz.list_layers(model)] == ["0"]
    cap = hookviz.capture(model, random_input(1))
    assert torch.equal(cap["0"].values, layer(random_input(1))[0].detach())


def test_sound_and_volumes_are_taken_as_tensors() -> None:
    sound = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv1d(2, 4, 9))))
    assert sound.input_shape == (2, 16_000)
    assert hookviz.list_layers(sound)[0].output_shape == (4, 15_992)
    for tensor in (torch.zeros(2, 100), torch.zeros(1, 2, 100)):
        assert hookviz.capture(sound, tensor)["0"].values.shape == (4, 92)
    volume = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv3d(1, 4, 3))))
    assert hookviz.capture(volume, torch.zeros(1, 8, 9, 10))["0"].values.shape == (4, 6, 7, 8)
    for model, form in ((sound, "C, L"), (volume, "C, D, H, W")):
        with pytest.raises(hookviz.ImageError, match=f"takes no image but .*{form}"):
            hookviz.capture(model, picture())
        with pytest.raises(hookviz.ImageError, match=f"float tensor of .{form}"):
            hookviz.capture(model, torch.zeros(3))


class Trains(nn.Module):
    """A batch norm and a dropout of torch's own, and one in the code of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout2d(0.5)
        self.conv2 = nn.Conv2d(8, 4, 3)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv2(self.drop(torch.relu(self.norm(self.conv1(images)))))
        means = nn.functional.dropout(maps.mean((2, 3)), 0.5, self.training)
        scores: Tensor = self.head(means)
        return scores


def of_torchs_own() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Dropout(0.5), nn.Conv2d(8, 4, 3))


def plainly(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """What plain hooks see on a copy, with random numbers that begin at a seed."""
    outputs: dict[str, Tensor] = {}
    network = copy.deepcopy(network)
    for name, module in network.named_children():
        module.register_forward_hook(
            lambda module, args, output, name=name: outputs.update({name: output.detach().clone()})
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        network(images)
    return outputs


@pytest.mark.parametrize("build", [Trains, of_torchs_own])
def test_a_network_is_shown_in_training_mode_as_it_stands(build: Callable[[], nn.Module]) -> None:
    network = seeded(build).train()
    before = copy.deepcopy(network.state_dict())
    expected = plainly(network, random_input(0))
    model = hookviz.wrap(network, hookviz.Preprocess(resize=16, crop=16), train=True)
    with torch.random.fork_rng(devices=[]):
        for _ in range(2):  # the second pass begins where the first one did
            torch.manual_seed(5)
            state = torch.get_rng_state()
            found = hookviz.capture(model, random_input(0), list(expected))
            assert torch.equal(torch.get_rng_state(), state)
            assert found.note == ""
            for name, values in expected.items():
                assert torch.equal(found[name].raw, values[0]), name
    states = network.state_dict()
    assert all(torch.equal(states[name], each) for name, each in before.items())
    assert all(part.training for part in network.modules())


def test_one_network_in_two_modes_has_two_places_in_a_cache() -> None:
    network, cache = seeded(Trains).train(), Budget(1 << 20).cache(1 << 20)
    runs = [
        hookviz.capture(hookviz.wrap(network, train=train), random_input(0), "norm", cache=cache)
        for train in (False, True)
    ]
    assert [run.forward_passes for run in runs] == [1, 1]
    assert not torch.equal(runs[0]["norm"].values, runs[1]["norm"].values)


@pytest.mark.parametrize("build", [Trains, of_torchs_own])
def test_a_network_in_training_mode_is_told_to_run_in_evaluation_mode(
    build: Callable[[], nn.Module],
) -> None:
    network = seeded(build).train()
    model = hookviz.wrap(network, hookviz.Preprocess(resize=16, crop=16))
    (found, *_) = hookviz.capture(model, [random_input(0)], "conv2" if build is Trains else "3")
    assert "training mode" in found.note
    assert "training mode" in found._repr_html_()
    (values,) = found.values()
    assert torch.equal(values.values, plainly(network.eval(), random_input(0))[values.layer][0])
    evaluated = hookviz.wrap(network, hookviz.Preprocess(resize=16, crop=16))
    assert hookviz.capture(evaluated, random_input(0)).note == ""
    plain = hookviz.wrap(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).train())
    assert plain.note == ""  # whose modes are the same
    with pytest.raises(hookviz.ModelError, match="train= go with"):
        hookviz.wrap(model, train=True)


def test_a_network_of_hugging_face_brings_its_labels() -> None:
    network = vit()
    assert hookviz.wrap(network).categories == LABELS
    assert hookviz.wrap(network, categories=["a", "b", "c"]).categories == ("a", "b", "c")
    assert hookviz.wrap(vit(id2label={0: "LABEL_0", 1: "LABEL_1"})).categories == ()
    body: Any = network.base_model
    assert hookviz.wrap(body).categories == ()  # it has no head


def test_processor_is_another_name_for_preprocess() -> None:
    def halved(image: Image.Image) -> Tensor:
        return random_input(3, 16)

    assert hookviz.wrap(seeded(Tiny), processor=halved).preprocess is halved
    assert hookviz.wrap(hookviz.wrap(seeded(Tiny)), processor=halved).preprocess is halved
    with pytest.raises(hookviz.ModelError, match="two names for one thing"):
        hookviz.wrap(seeded(Tiny), halved, processor=halved)


def test_the_size_that_a_network_states_holds_beside_a_function() -> None:
    """It takes 32 pixels and no other size, which would be found by a search alone."""
    model = hookviz.wrap(vit(), lambda image: random_input(3, 32))
    assert model.input_shape == (3, 32, 32)
    assert hookviz.list_layers(model)
    small = hookviz.wrap(seeded(digits), lambda image: torch.zeros(1, 28, 28))
    hookviz.list_layers(small)
    assert small.input_shape == (1, 28, 28)
