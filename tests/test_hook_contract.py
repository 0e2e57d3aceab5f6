"""No hook is left and nothing is changed by any public function, wherever a pass breaks off."""

import inspect
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.hooking import network_state
from tests.networks import as_model, hook_count, random_input, seeded


class Fuse:
    """Counts the calls of all layers, forward and backward, and raises at the one that is set."""

    def __init__(self) -> None:
        self.calls = 0
        self.at = -1
        self.error: type[BaseException] = RuntimeError

    def burn(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.at:
            raise self.error("the fuse has blown")

    def set(self, at: int, error: type[BaseException] = RuntimeError) -> None:
        self.calls, self.at, self.error = 0, at, error


FUSE = Fuse()


class Burning(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, values: Tensor) -> Tensor:
        return values.clone()

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        FUSE.burn()
        return gradients[0]


class Layer(nn.Module):
    """A layer that can fail on either way."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, values: Tensor) -> Tensor:
        FUSE.burn()
        output: Tensor = Burning.apply(self.inner(values))
        return output


class Fragile(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Layer(nn.Conv2d(3, 4, 3))
        self.relu = Layer(nn.ReLU(inplace=True))
        self.second = Layer(nn.Conv2d(4, 4, 3))
        self.head = Layer(nn.Linear(4, 5))

    def forward(self, images: Tensor) -> Tensor:
        values = self.relu(self.second(self.relu(self.first(images))))
        scores: Tensor = self.head(values.mean((2, 3)))
        return scores


def theirs(*_call: Any) -> None:
    """A hook of somebody else's, which has to stay."""


def condition(network: nn.Module) -> list[Any]:
    """Everything that a network holds, by identity and by value."""
    state: list[Any] = [len(IMAGE._backward_hooks or ())]
    for module in network.modules():
        tables = [getattr(module, name) for name in sorted(vars(module)) if "hooks" in name]
        state.append([list(table.items()) for table in tables if table is not None])
        state.append((module.training, sorted(vars(module))))
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                assert tensor is not None
                hooks = len(tensor._backward_hooks or ())
                values = tensor.detach().numpy().tobytes()
                state.append((name, id(tensor), tensor.requires_grad, hooks, values))
    return state


IMAGE = random_input(0, 8).requires_grad_()
PICTURE = Image.fromarray((255 * random_input(0, 8)[0].movedim(0, -1)).byte().numpy())


def training(network: nn.Module) -> None:
    IMAGE.grad = None
    network(IMAGE).sum().backward()


def block(make: Callable[[nn.Module], AbstractContextManager[Any]]) -> Callable[[nn.Module], None]:
    """A training step inside of a block."""

    def run(network: nn.Module) -> None:
        with make(network):
            training(network)

    return run


def decorated(make: Callable[[nn.Module], Any]) -> Callable[[nn.Module], None]:
    return lambda network: make(network)(training)(network)


OWN: dict[str, list[Callable[[nn.Module], Any]]] = {
    "breakpoint_at": [block(lambda net: hookviz.breakpoint_at(net, None, theirs))],
    "observe": [
        block(lambda net: hookviz.observe(net, None, theirs)),
        block(lambda net: hookviz.observe(net, None, theirs, always_call=True)),
        decorated(lambda net: hookviz.observe(net, None, theirs)),
        block(lambda net: hookviz.observe(net, None)),
    ],
    "edit": [block(lambda net: hookviz.edit(net, "*", lambda call: call.output * 2))],
    "edit_inputs": [
        block(lambda net: hookviz.edit_inputs(net, Layer, lambda call: call.inputs[0] + 1))
    ],
    "on_gradients": [
        block(hookviz.on_gradients),
        decorated(lambda net: hookviz.on_gradients(net, None, lambda each: each.value * 2)),
    ],
    "replace_parameters": [
        block(
            lambda net: hookviz.replace_parameters(
                net, {name: torch.zeros_like for name, _ in net.named_parameters()}
            )
        ),
    ],
    "clip_gradients": [
        block(lambda net, at=at: hookviz.clip_gradients(net, 0.1, at=at))  # type: ignore[misc]
        for at in ("parameters", "inputs", "outputs")
    ],
    "record": [block(hookviz.record)],
    "watch": [block(hookviz.watch)],
    "summary": [lambda net: hookviz.summary(net, random_input(0, 8), file=io.StringIO())],
}
"""What people do to a network of their own."""


def similar(model: hookviz.Model) -> None:
    """An image for which a pass fails is left out, and told."""
    images = [random_input(seed, 8) for seed in range(3)]
    similarity = hookviz.similarity(model, model, images, unbiased=False)
    for reason in similarity.failed.values():
        raise hookviz.ModelError(reason)


def make_atlas(model: hookviz.Model) -> None:
    with TemporaryDirectory() as folder:
        images = {str(seed): random_input(seed, 8) for seed in range(3)}
        atlas = hookviz.make_atlas(model, images, Path(folder) / "of.atlas", batch=1)
    for reason in atlas.left_out.values():
        raise hookviz.ModelError(reason)


def stream(model: hookviz.Model) -> None:
    for _, found in hookviz.stream(model, [random_input(seed, 8) for seed in range(2)]):
        if isinstance(found, hookviz.HookVizError):
            raise found


def attention(model: hookviz.Model) -> None:
    """Nothing attends there, which is told after a pass that is watched as any other."""
    try:
        hookviz.attention(model, random_input(0, 8), "second")
    except hookviz.ModelError as error:
        if "computes no attention" not in str(error):
            raise


def class_maps(model: hookviz.Model) -> None:
    """It classifies, which is told after a pass that is watched as any other."""
    try:
        hookviz.segmentation_maps(model, random_input(0, 8))
    except hookviz.ModelError as error:
        if "no scores of classes at each pixel" not in str(error):
            raise


def of_two_layers(model: hookviz.Model) -> hookviz.MaximizationResult:
    goal = hookviz.Objective.of_channel("first", 1) - hookviz.Objective.of_channel("second", 2)
    return hookviz.maximize_activation(
        model, goal, steps=2, method=hookviz.MaximizationConfig(size=None)
    )


def save_script(model: hookviz.Model) -> None:
    with TemporaryDirectory() as folder:
        hookviz.save_script(of_two_layers(model), Path(folder) / "goal.py")


def save_page(model: hookviz.Model) -> None:
    with TemporaryDirectory() as folder:
        capture = hookviz.capture(model, random_input(0, 8), "second")
        hookviz.save_page(capture, Path(folder) / "of.html")


def save_live_page(model: hookviz.Model) -> None:
    with TemporaryDirectory() as folder:
        hookviz.save_live_page(model, Path(folder) / "of.html", samples=[PICTURE])


MODELS: dict[str, list[Callable[[hookviz.Model], Any]]] = {
    "attention": [attention],
    "segmentation_maps": [class_maps],
    "capture": [
        lambda model: hookviz.capture(model, random_input(0, 8), inputs=True),
        lambda model: hookviz.capture(model, random_input(0, 8), "relu", logits=False),
    ],
    "stream": [stream],
    "extract_features": [lambda model: hookviz.extract_features(model, [random_input(0, 8)])],
    "list_layers": [lambda model: hookviz.list_layers(model, input_shape=(3, 8, 8))],
    "grad_cam": [lambda model: hookviz.grad_cam(model, random_input(0, 8))],
    "stream_lens": [
        lambda model: list(hookviz.stream_lens("saliency", model, [random_input(0, 8)]))
    ],
    "saliency": [lambda model: hookviz.saliency(model, random_input(0, 8))],
    "integrated_gradients": [
        lambda model: hookviz.integrated_gradients(model, random_input(0, 8), steps=2)
    ],
    "occlusion": [lambda model: hookviz.occlusion(model, random_input(0, 8), window=4, stride=4)],
    "effective_receptive_field": [
        lambda model: hookviz.effective_receptive_field(model, random_input(0, 8), layer="first")
    ],
    "ablate_channels": [lambda model: hookviz.ablate_channels(model, random_input(0, 8))],
    "network_health": [lambda model: hookviz.network_health(model, random_input(0, 8))],
    "gradient_flow": [lambda model: hookviz.gradient_flow(model, random_input(0, 8))],
    "channel_maps": [
        lambda model: hookviz.channel_maps(
            model, random_input(0, 8), images=[random_input(1, 8)], layer="first"
        )
    ],
    "conv_kernels": [lambda model: hookviz.conv_kernels(model, random_input(0, 8))],
    "layer_gradient": [lambda model: hookviz.layer_gradient(model, random_input(0, 8))],
    "region_selectivity": [
        lambda model: hookviz.region_selectivity(
            model, random_input(0, 8), region="rect:0,0,0.5,1", layer="first"
        )
    ],
    "trace_execution": [lambda model: hookviz.trace_execution(model, random_input(0, 8))],
    "verify": [lambda model: hookviz.verify(model, random_input(0, 8))],
    "smallest_change": [lambda model: hookviz.smallest_change(model, PICTURE, steps=1, most=1)],
    "dream": [lambda model: hookviz.dream(model, random_input(0, 8), layer="first", steps=2)],
    "invert": [lambda model: hookviz.invert(model, random_input(0, 8), layer="first", steps=2)],
    "run_lens": [
        lambda model: hookviz.run_lens("grad-cam", model, random_input(0, 8)),
    ],
    "make_atlas": [make_atlas],
    "maximize_activation": [
        lambda model: hookviz.maximize_activation(
            model,
            hookviz.Objective.of_class(1),
            steps=2,
            method=hookviz.MaximizationConfig(size=None),
        ),
        of_two_layers,
    ],
    "save_script": [save_script],
    "draw_network": [lambda model: hookviz.draw_network(model, random_input(0, 8))],
    "save_page": [save_page],
    "save_live_page": [save_live_page],
    "similarity": [similar],
    "prune": [lambda model: hookviz.prune(model, 0.5)],
    "patch": [
        lambda model: hookviz.patch(
            model, random_input(0, 8), random_input(1, 8), ["first", "second"], target=0
        )
    ],
}
"""What is done to a model, on replicas of its network."""

TRY_AGAIN: dict[str, list[Callable[[hookviz.Model], Any]]] = {
    "prune by effect": [
        lambda model: hookviz.prune(
            model, 0.5, "channels by effect", image=random_input(0, 8), keep_biases=True
        )
    ],
}
"""Where many rows go through at once, and one by one where that fails."""

RUN_NO_NETWORK = {
    *("compare", "edited", "explore", "figure", "list_lenses", "list_models", "load_model"),
    *("make_grid", "prepare_input"),
    *("load_atlas", "read_image", "save_atlas_pages", "save_weights", "wrap"),
    "lightning_callback",  # whose trainer records, as `record` does
    "linear_probe",  # which has its features from extract_features, and runs nothing itself
    "remove_pruned_channels",  # held to the same in explaining/pruning/test_compacted_model.py
}


MENDED = {"batch": 25, "stream": 25, "stream_lens": 25, "similarity": 61, "prune by effect": 60}
"""Calls whose failure another pass makes good, or that is given for its image."""

WATCHED = 20
"""As many of any other: who lists the layers goes on where the pass that is watched fails, or those
at other sizes, which a network may refuse."""


def cases(table: dict[str, list[Any]], others: Callable[[str], tuple[Any, ...]]) -> list[Any]:
    return [
        pytest.param(each, *others(name), id=f"{name}-{number}")
        for name, every in table.items()
        for number, each in enumerate(every)
    ]


def test_every_public_function_is_held_to_it() -> None:
    functions = {name for name in hookviz.__all__ if inspect.isroutine(getattr(hookviz, name))}
    assert functions == {*OWN, *MODELS, *RUN_NO_NETWORK}


def fragile() -> nn.Module:
    network = seeded(Fragile)
    network.second.register_forward_hook(theirs)
    return network


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("act", cases(OWN, lambda _name: ()))
def test_a_network_of_ones_own_is_as_before(
    act: Callable[[nn.Module], Any], error: type[BaseException]
) -> None:
    network = fragile()
    before = condition(network)
    FUSE.set(-1)
    act(network)
    assert condition(network) == before
    calls = FUSE.calls
    assert calls in (5, 10)  # without gradients, and with
    for at in range(calls):
        FUSE.set(at, error)
        with pytest.raises((error, hookviz.ModelError)) as caught:
            act(network)
        assert error in (type(caught.value), type(caught.value.__cause__))
        assert condition(network) == before, at


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(
    ("act", "mended"),
    cases(MODELS | TRY_AGAIN, lambda name: (MENDED.get(name, WATCHED),)),
)
def test_a_model_is_as_before(
    act: Callable[[hookviz.Model], Any], mended: int, error: type[BaseException]
) -> None:
    """Each time a new model: the first run lists its layers, in passes that can fail as well."""

    def run(at: int) -> bool:
        model = as_model(fragile())
        before = condition(model.network)
        FUSE.set(at, error)
        try:
            act(model)
            raised = False
        except (error, hookviz.ModelError):
            raised = True
        at_rest = [hook_count(each.network) for each in network_state._idle.get(model.network, [])]
        assert not any(at_rest), at
        assert condition(model.network) == before, at
        return raised

    assert not run(-1)
    calls = FUSE.calls
    assert calls >= 5
    most_mended = 0 if error is KeyboardInterrupt else mended
    assert sum(map(run, range(calls))) >= calls - most_mended
