import copy
import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any
from weakref import ref

import pytest
import timm
import torch
from PIL import Image
from segmentation_models_pytorch import Unet
from torch import Tensor, fx, nn
from torchvision.models import resnet18
from torchvision.models.segmentation import lraspp_mobilenet_v3_large
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModel,
    ResNetConfig,
    ResNetForImageClassification,
    ResNetModel,
)

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.models.wrapping import Example, as_model, stated_output
from tests.every_lens import SLUGS_OF_TENSORS
from tests.kinds_of_networks import small_detector
from tests.networks import Tiny, hook_count, random_input, seeded
from tests.pictures import picture
from tests.repositories import LABELS, vit


class Two(nn.Module):
    """An image and a vector that scales its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.scale = nn.Linear(2, 4)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor, about: Tensor, *, power: float = 1.0) -> Tensor:
        scales = self.scale(about)[:, :, None, None]
        scores: Tensor = self.head((self.conv(images) * scales).mean((2, 3)) ** power)
        return scores


class OfADictionary(Two):
    def forward(self, batch: Mapping[str, Any]) -> Tensor:  # type: ignore[override]
        return super().forward(batch["image"], batch["more"]["about"])


ABOUT = torch.tensor([[1.0, 2.0]])
IMAGE = random_input(5, 24)
EXAMPLES: dict[str, tuple[type[Two], Example]] = {
    "positional": (Two, (IMAGE, ABOUT)),
    "by name": (Two, {"about": ABOUT, "images": IMAGE, "power": 2.0}),
    "dictionary": (OfADictionary, ({"more": {"about": ABOUT}, "image": IMAGE},)),
}


@pytest.mark.parametrize(("build", "example"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_network_of_several_inputs_takes_the_image(build: type[Two], example: Example) -> None:
    network = seeded(build).eval()
    model = hookviz.wrap(network, example=example)
    assert model.preprocess == hookviz.Preprocess(resize=24, crop=24)
    assert model.network is network
    listed = [layer.name for layer in hookviz.list_layers(model, kind="all")]
    assert listed == ["scale", "conv", "head"]
    image = random_input(1, 24)
    cap = hookviz.capture(model, image)
    if isinstance(example, Mapping):
        expected = network(image, ABOUT, power=2.0)
    elif build is OfADictionary:
        expected = network({"image": image, "more": {"about": ABOUT}})
    else:
        expected = network(image, ABOUT)
    assert cap.logits is not None
    assert torch.equal(cap.logits, expected[0].detach())
    assert torch.equal(cap["conv"].values, network.conv(image)[0].detach())
    cache = Budget(1 << 20).cache(1 << 20)
    for about in (ABOUT, -ABOUT):  # each has a place of its own in a cache
        other = hookviz.wrap(seeded(Two).eval(), example=(IMAGE, about))
        for passes in (1, 0):
            found = hookviz.capture(other, IMAGE, cache=cache)
            assert found.forward_passes == passes
            assert found.logits is not None
            assert torch.equal(found.logits, other.network(IMAGE, about)[0].detach())


@pytest.mark.parametrize("lens", SLUGS_OF_TENSORS)
def test_every_lens_works_on_it(lens: str) -> None:
    model = hookviz.wrap(seeded(Two), example=(IMAGE, ABOUT))
    hookviz.run_lens(lens, model, random_input(1, 24))


def test_the_examples_tensors_and_the_module_stay_as_they_are() -> None:
    class Spoils(Two):
        """It writes into what it is given."""

        def forward(self, images: Tensor, about: Tensor, *, power: float = 1.0) -> Tensor:
            scores = super().forward(images, about, power=power)
            images.zero_()
            about.zero_()
            return scores

    about, image = ABOUT.clone(), IMAGE.clone()
    network = seeded(Spoils)
    model = hookviz.wrap(network, example=(image, about))
    first, second = (hookviz.capture(model, IMAGE).logits for _ in range(2))
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)
    assert torch.equal(about, ABOUT)
    assert torch.equal(image, IMAGE)
    assert "forward" not in vars(network)
    assert not dict(network.named_buffers())
    own = vars(network)["forward"] = network.forward
    hookviz.capture(model, IMAGE)
    assert vars(network)["forward"] is own  # one of its own is put back


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (IMAGE, "neither a tuple .* nor a dict"),
        ((ABOUT,), r"no image in it .1×2"),
        ((), "no image in it .no tensor at all"),
        ((torch.zeros(2, 3, 8, 8), ABOUT), "2 images; give an example of one"),
    ],
)
def test_an_example_that_does_not_do_is_refused(example: Any, reason: str) -> None:
    with pytest.raises(hookviz.ModelError, match=reason):
        hookviz.wrap(seeded(Two), example=example)


def test_a_model_takes_no_example_and_one_that_does_not_run_is_told_by_the_first_look() -> None:
    with pytest.raises(hookviz.ModelError, match="is a Model already"):
        hookviz.wrap(hookviz.wrap(seeded(Tiny)), example=(IMAGE,))
    model = hookviz.wrap(seeded(Two), example=(IMAGE, torch.zeros(1, 7)))
    with pytest.raises(hookviz.ModelError, match="scale"):
        hookviz.capture(model, IMAGE)


def test_a_graph_module_takes_an_example() -> None:
    twin, network = (fx.symbolic_trace(seeded(Two)).eval() for _ in range(2))
    with torch.no_grad():
        first, last = twin.get_submodule("conv")(IMAGE), twin(IMAGE, ABOUT)
    model = hookviz.wrap(network, example=(IMAGE, ABOUT))
    for _ in range(2):
        cap = hookviz.capture(model, IMAGE, ["conv", "head"])
        assert torch.equal(cap["conv"].values, first[0])
        assert torch.equal(cap["head"].values, last[0])


LISTS: dict[str, Example | None] = {
    "no example": None,
    "a list": ([torch.rand(3, 64, 64)],),
    "by name": {"images": [torch.rand(3, 64, 64)], "targets": None},
}


@pytest.mark.parametrize("example", LISTS.values(), ids=LISTS)
def test_a_detector_takes_a_list_of_images(example: Example | None) -> None:
    network, images = seeded(small_detector).eval(), torch.rand(2, 3, 64, 64)
    model = hookviz.wrap(network, example=example)
    conv = "backbone.0"
    seen: list[Tensor] = []
    with network.get_submodule(conv).register_forward_hook(lambda *call: seen.append(call[2])):
        network([*images])
    for image, plain in zip(images, seen[0], strict=True):
        found = hookviz.capture(model, image[None], conv)[conv].values
        assert torch.allclose(found, plain, atol=1e-5)
    together = hookviz.capture(model, images, [conv])
    assert torch.allclose(together[1][conv].values, seen[0][1], atol=1e-5)
    given = hookviz.prepare_input(hookviz.wrap(network), picture()).tensor
    assert 0 <= given.min() < given.max() <= 1  # which it normalises itself


@pytest.mark.parametrize("lens", ["grad-cam", "saliency", "occlusion", "gradients"])
def test_a_detector_is_asked_about_the_best_box_of_a_class(lens: str) -> None:
    image = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    model = hookviz.wrap(seeded(small_detector).eval())
    layer = {"layer": "backbone.0"} if lens in ("grad-cam", "gradients") else {}
    result = hookviz.run_lens(lens, model, image, **layer)  # type: ignore[arg-type]
    with torch.no_grad():
        (boxes,) = model.network([*image])
    assert result.chosen["target"] == int(boxes["labels"][boxes["scores"].argmax()])


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
    assert hookviz.wrap(model) is model
    changed = hookviz.wrap(model, categories=list("vwxyz"), name="mine")
    assert (changed.categories, changed.name, changed.title) == (tuple("vwxyz"), "mine", "mine")
    assert changed.network is module
    assert changed.preprocess is model.preprocess
    for wrong, kind in ((digits, "function"), (3, "int"), (Tiny, "type")):
        with pytest.raises(hookviz.ModelError, match=f"not {kind}"):
            hookviz.wrap(wrong)  # type: ignore[arg-type]


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


def test_a_network_that_cant_be_copied_is_looked_at() -> None:
    network = seeded(Tiny)
    network.lock = threading.Lock()  # type: ignore[assignment]
    found = hookviz.capture(network, random_input(1))["conv1"].values
    assert torch.equal(found, network.conv1(random_input(1))[0].detach())

    class Never(nn.Module):
        def forward(self, _: Tensor) -> Tensor:
            raise LookupError("of its own")

    model = hookviz.wrap(Never())
    assert model.preprocess == hookviz.Preprocess(resize=256, crop=224)
    with pytest.raises(hookviz.ModelError, match="of its own"):
        hookviz.capture(model, picture())


def digits() -> nn.Module:
    """A LeNet: it takes 28×28 and nothing else."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 10)),
    )


def pooled(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def test_the_first_conv_layer_says_how_many_channels_a_network_takes() -> None:
    colour, grey = (hookviz.wrap(pooled(channels)) for channels in (3, 1))
    assert colour.preprocess == hookviz.Preprocess(resize=256, crop=224)
    assert grey.preprocess == hookviz.Preprocess(resize=256, crop=224, mean=(0.5,), std=(0.5,))
    seen = hookviz.capture(grey, picture())
    assert seen.input.shape == (1, 1, 224, 224)
    assert seen["0"].values.shape == (4, 222, 222)
    assert -1 <= seen.input.min() < seen.input.max() <= 1


def test_other_channel_counts_take_tensors_and_say_so() -> None:
    model = hookviz.wrap(pooled(5))
    assert [layer.input_shape for layer in hookviz.list_layers(model)] == [(5, 224, 224)]
    with pytest.raises(hookviz.HookVizError, match=r"takes 5 channels.*tensor"):
        hookviz.capture(model, picture())
    assert hookviz.capture(model, torch.randn(5, 40, 40))["0"].values.shape == (4, 38, 38)

    def five(image: Any) -> Tensor:
        return torch.ones(5, *reversed(image.size))

    own = hookviz.wrap(pooled(5), five)
    assert hookviz.capture(own, picture())["0"].values.shape == (4, 28, 38)


def test_categories_are_one_label_per_class(tiny: hookviz.Model) -> None:
    wrong: list[tuple[Any, str]] = [
        *(("cat", "no sequence of labels"), (5, "no sequence of labels")),
        ([0, 1, 2, 3, 4], "holds 0, which is no text"),
    ]
    for module in (seeded(Tiny), tiny):
        model = hookviz.wrap(module, categories=["cat", "dog"])
        with pytest.raises(hookviz.ModelError, match="2 labels, and Tiny puts out 5 classes"):
            hookviz.capture(model, random_input(1))
        for labels, reason in wrong:
            with pytest.raises(hookviz.ModelError, match=reason):
                hookviz.wrap(module, categories=labels)
    maps = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(2))  # of nobody knows how many classes
    of_maps = hookviz.wrap(maps, categories=["a", "b", "c"])
    assert hookviz.capture(of_maps, random_input(1)).categories == ("a", "b", "c")


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
    cache, first = Budget(1 << 20).cache(1 << 20), next(iter(expected))
    runs = [
        hookviz.capture(hookviz.wrap(network, train=train), random_input(0), cache=cache)
        for train in (False, True)
    ]
    assert [run.forward_passes for run in runs] == [1, 1]  # each mode has a place of its own
    assert first in runs[0]


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


def test_the_size_that_a_network_states_holds_beside_a_function() -> None:
    """It takes 32 pixels and no other size, which would be found by a search alone."""

    def drawn(image: Image.Image) -> Tensor:
        return random_input(3, 32)

    assert hookviz.wrap(seeded(Tiny), processor=drawn).preprocess is drawn
    assert hookviz.wrap(hookviz.wrap(seeded(Tiny)), processor=drawn).preprocess is drawn
    with pytest.raises(hookviz.ModelError, match="two names for one thing"):
        hookviz.wrap(vit(), drawn, processor=drawn)
    model = hookviz.wrap(vit(), drawn)
    assert model.input_shape == (3, 32, 32)
    assert hookviz.list_layers(model)
    small = hookviz.wrap(seeded(digits), lambda image: torch.zeros(1, 28, 28))
    assert hookviz.list_layers(small)[0].output_shape == (6, 28, 28)
    assert small.input_shape == (1, 28, 28)


def scripted() -> nn.Module:
    module: nn.Module = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3)))
    return module


def traced() -> nn.Module:
    module: nn.Module = torch.jit.trace(  # type: ignore[no-untyped-call]
        nn.Sequential(nn.Conv2d(3, 4, 3)), torch.zeros(1, 3, 8, 8)
    )
    return module


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4).to_sparse())


UNSUITABLE: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "scripted": (scripted, "Sequential is a scripted TorchScript module.*scripted from"),
    "traced": (traced, "Sequential is a traced TorchScript module.*traced from"),
    "lazy": (lambda: nn.Sequential(nn.LazyConv2d(4, 3)), "is lazy: .* 0.weight .*run the module"),
    "meta": (lambda: seeded(Tiny).to("meta"), "Tiny is on the meta device.*to_empty"),
    "sparse": (lambda: nn.Sequential(Sparse()), "sparse tensor in 0.weight.*to_dense"),
    "quantised": (
        lambda: nn.Sequential(torch.ao.nn.quantized.Conv2d(3, 4, 3)),  # type: ignore[no-untyped-call]
        "is quantised .layer '0'.*wrap the float module",
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is about to go


@pytest.mark.parametrize(("build", "reason"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_what_cannot_be_looked_at_is_named_with_what_to_do(
    build: Callable[[], nn.Module], reason: str
) -> None:
    with pytest.raises(hookviz.ModelError, match=reason):
        hookviz.wrap(build())
    lazy = nn.Sequential(nn.LazyConv2d(4, 3))  # what follows the advice is taken
    lazy(torch.zeros(1, 3, 8, 8))
    assert hookviz.list_layers(hookviz.wrap(lazy))
    filled = seeded(Tiny).to("meta").to_empty(device="cpu")
    filled.load_state_dict(seeded(Tiny).state_dict())
    assert hookviz.wrap(filled).digest == hookviz.wrap(seeded(Tiny)).digest


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


def _headless() -> nn.Module:
    network: nn.Module = resnet18()
    network.fc = nn.Identity()
    return network


def _hugging_face(**options: Any) -> nn.Module:
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], **options)
    network: nn.Module = ResNetForImageClassification(config)
    return network


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (Tiny, ""),
        (resnet18, "logits"),
        (_headless, "embedding"),
        (lambda: nn.Sequential(Tiny(), nn.Softmax(1)), "probabilities"),
        (lambda: nn.Sequential(Tiny(), nn.Sigmoid()), "probabilities"),
        (lambda: nn.Sequential(Tiny(), nn.LogSoftmax(1)), "logits"),
        (lambda: lraspp_mobilenet_v3_large(weights=None, weights_backbone=None), "maps"),
        (
            lambda: Unet(
                "resnet18", encoder_weights=None, encoder_depth=3, decoder_channels=(8, 8, 8)
            ),
            "maps",
        ),
        (lambda: timm.create_model("resnet10t"), "logits"),
        (lambda: timm.create_model("resnet10t", num_classes=0), "embedding"),
        (lambda: _hugging_face(num_labels=3), "logits"),
        (lambda: _hugging_face(num_labels=1), "number"),
        (
            lambda: _hugging_face(num_labels=3, problem_type="multi_label_classification"),
            "multilabel",
        ),
        (lambda: _hugging_face(num_labels=3, problem_type="regression"), "number"),
        (
            lambda: ResNetModel(ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1])),
            "embedding",
        ),
        (
            lambda: CLIPVisionModel(
                CLIPVisionConfig(
                    hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2
                )
            ),
            "embedding",
        ),
    ],
)
def test_a_network_states_what_it_puts_out(build: Callable[[], nn.Module], kind: str) -> None:
    stated = stated_output(build())
    assert stated.kind == kind
    assert not stated.is_said


class DetectionModel(nn.Module):
    """Boxes as ultralytics puts them out: 4 numbers each, and a row for each class behind them."""

    __module__ = "ultralytics.nn.tasks"

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4 + 2, 1)
        self.names = {0: "cat", 1: "dog"}

    def forward(self, images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        rows = self.conv(images).sigmoid().flatten(2)
        return rows, {"feats": rows}


def test_yolo_s_boxes_are_asked_by_class_and_its_images_are_not_normalised() -> None:
    network = DetectionModel().eval()
    model = hookviz.wrap(network)
    assert model.categories == ("cat", "dog")
    assert isinstance(model.preprocess, hookviz.Preprocess)
    assert (model.preprocess.mean, model.preprocess.std) == ((0.0,) * 3, (1.0,) * 3)
    image = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    cap = hookviz.capture(model, image, ())
    with torch.no_grad():
        best = network(image)[0][0, 4:].amax(-1)
    assert cap.answer is not None
    torch.testing.assert_close(cap.answer.values, best)
    assert cap.answer.is_share
