"""Networks of other people's libraries show what plain hooks see, and stay as they are."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

import hookviz
from tests.networks import random_input, seeded
from tests.other_libraries import (
    HUGGING_FACE,
    OTHERS,
    OtherNetwork,
    Small,
    diffusion_unet,
    library,
    snntorch_network,
    spikingjelly_network,
)
from tests.plain_hooks import equal, equal_outputs, plain_pass, tensors_in
from tests.unharmed import generators

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own

Outputs = Mapping[str, Tensor]
"""What each call of each module put out, by its written address."""


def outputs_by_plain_hooks(network: nn.Module, run: Callable[[], Any]) -> Outputs:
    """Copy at once what every module puts out, containers included."""
    outputs: dict[str, Tensor] = {}
    calls: Counter[str] = Counter()

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            call = f"#{calls[name]}" if calls[name] else ""
            calls[name] += 1
            for path, tensor in tensors_in(output):
                outputs[f"{name}{call}{path}"] = tensor.detach().clone()

        return hook

    modules = ((name, module) for name, module in network.named_modules() if name)
    handles = [module.register_forward_hook(keep(name)) for name, module in modules]
    with torch.no_grad():
        run()
    for handle in handles:
        handle.remove()
    return outputs


def layers_of(outputs: Outputs) -> list[str]:
    return list(dict.fromkeys(name.partition("#")[0].partition("[")[0] for name in outputs))


def assert_equals(cap: hookviz.Capture, outputs: Outputs) -> None:
    """To the last bit, in float32 and without the batch."""
    assert cap.keys() == outputs.keys()
    assert [address for address in cap if not is_same(cap[address].raw, outputs[address])] == []


def is_same(raw: Tensor, output: Tensor) -> bool:
    shape = tuple(output.shape)
    without_batch = {(*shape[:n], *shape[n + 1 :]) for n, size in enumerate(shape) if size == 1}
    if raw.dtype != torch.float32 or tuple(raw.shape) not in {shape, *without_batch}:
        return False
    return equal(raw, output.float().reshape(raw.shape))


def state_of(network: nn.Module) -> list[Any]:
    """Flags, parameters and buffers of every module, and the global generators."""
    state: list[Any] = [generators()]
    for name, module in network.named_modules():
        tensors = {**module._parameters, **module._buffers}.items()
        state.append((name, module.training))
        state += [(key, id(part), numbers(part)) for key, part in tensors if part is not None]
    return state


def hooks_of(network: nn.Module) -> dict[tuple[str, str], int]:
    """How many hooks each table of each module holds.

    A first call may put hooks on a network by itself, as transformers does, which looking at it
    leaves in place.
    """
    return {
        (name, key): len(table or ())
        for name, module in network.named_modules()
        for key, table in vars(module).items()
        if key.endswith("_hooks")
    }


def numbers(tensor: Tensor) -> bytes:
    return tensor.detach().numpy().tobytes()


def train_with_frozen_norms(network: nn.Module) -> None:
    network.train()
    for module in network.modules():
        if "Norm" in type(module).__name__:
            module.eval()


def assert_capture_equals_plain_hooks(other: OtherNetwork) -> None:
    """Of a network in training mode, which looking at it changes no more than one call."""
    own, twin = seeded(other.build), seeded(other.build).eval()
    behind = twin.module if isinstance(twin, DistributedDataParallel) else twin
    outputs = outputs_by_plain_hooks(behind, lambda: twin(other.image))
    train_with_frozen_norms(own)
    before = state_of(own)
    cap = hookviz.capture(own, other.image, layers_of(outputs))
    assert state_of(own) == before
    assert hooks_of(own) == hooks_of(twin)
    assert_equals(cap, outputs)
    assert equal_outputs(plain_pass(own.eval(), other.image), plain_pass(twin, other.image))


@pytest.fixture
def activations() -> Iterator[None]:
    """The registry of transformers' activations holds the same objects behind the test."""
    module = library("transformers.activations")

    def contents() -> list[tuple[str, int]]:
        items: Iterable[tuple[str, Any]] = [*vars(module).items(), *dict.items(module.ACT2FN)]
        return [(name, id(value)) for name, value in items]

    before = contents()
    yield
    assert contents() == before


@pytest.mark.usefixtures("activations")
@pytest.mark.parametrize("family", HUGGING_FACE)
def test_hugging_face_network_shows_what_plain_hooks_see(family: str) -> None:
    assert_capture_equals_plain_hooks(HUGGING_FACE[family])


@pytest.mark.usefixtures("activations")
@pytest.mark.parametrize("family", ["ResNet", "ViT"])
def test_second_network_of_a_class_is_wrapped_after_it_has_run(family: str) -> None:
    other = HUGGING_FACE[family]
    first = hookviz.wrap(seeded(other.build))
    hookviz.list_layers(first)
    hookviz.capture(first, other.image)
    own = other.build().eval()
    outputs = outputs_by_plain_hooks(own, lambda: own(other.image))
    cap = hookviz.capture(hookviz.wrap(own), other.image, layers_of(outputs))
    assert_equals(cap, outputs)


@pytest.mark.parametrize("name", OTHERS)
def test_network_of_another_library_shows_what_plain_hooks_see(name: str) -> None:
    assert_capture_equals_plain_hooks(OTHERS[name])


def test_distributed_network_shows_what_plain_hooks_see(tmp_path: Path) -> None:
    store = f"file://{tmp_path / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        assert_capture_equals_plain_hooks(OtherNetwork(lambda: DistributedDataParallel(Small())))
    finally:
        distributed.destroy_process_group()


def test_network_with_a_time_step_shows_what_plain_hooks_see() -> None:
    own, image = seeded(diffusion_unet).eval(), random_input(0, 32)
    outputs = outputs_by_plain_hooks(own, lambda: own(image, 3))
    before, hooks = state_of(own), hooks_of(own)
    model = hookviz.wrap(own, example=(random_input(1, 32), 3))
    cap = hookviz.capture(model, image, layers_of(outputs))
    assert (state_of(own), hooks_of(own)) == (before, hooks)
    assert_equals(cap, outputs)


def count_passes(network: nn.Module) -> list[None]:
    """A list that grows with every call of the network."""
    passes: list[None] = []
    network.register_forward_pre_hook(lambda _module, _inputs: passes.append(None))
    return passes


def test_state_in_buffers_is_put_back() -> None:
    own, twin = seeded(snntorch_network).eval(), seeded(snntorch_network).eval()
    image = random_input(0, 32) * 5
    for network in (own, twin):
        plain_pass(network, image)
    before, hooks = state_of(own), hooks_of(own)
    outputs = outputs_by_plain_hooks(twin, lambda: twin(image))
    cap = hookviz.capture(own, image, layers_of(outputs))
    assert (state_of(own), hooks_of(own)) == (before, hooks)
    assert_equals(cap, outputs)
    assert equal_outputs(plain_pass(own, image), {"0": outputs["4[0]"], "1": outputs["4[1]"]})


def test_state_outside_of_buffers_moves_as_calls_move_it() -> None:
    own, twin = seeded(spikingjelly_network).eval(), seeded(spikingjelly_network).eval()
    image, passes = random_input(0, 32) * 5, count_passes(own)
    model = hookviz.wrap(own)
    assert len(passes) == 0
    cap = hookviz.capture(model, image, ["1", "3", "4"])
    assert 1 <= len(passes) <= 2
    seen = [outputs_by_plain_hooks(twin, lambda: twin(image)) for _ in passes]
    assert_equals(cap, {name: seen[-1][name] for name in ("1", "3", "4")})
    for name in ("1", "4"):
        ours, theirs = own.get_submodule(name).v, twin.get_submodule(name).v
        assert isinstance(ours, Tensor)
        assert isinstance(theirs, Tensor)
        assert equal(ours, theirs)


class Compiler:
    """Backend of `torch.compile` that counts how often what it has compiled runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, graph: torch.fx.GraphModule, _inputs: list[Tensor]) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            self.runs += 1
            return graph.forward(*inputs)

        return run


def as_compiled(network: nn.Module, compiler: Compiler) -> nn.Module:
    compiled: Any = torch.compile(network, backend=compiler)
    return compiled  # type: ignore[no-any-return]


def compiled_in_place(network: nn.Module, compiler: Compiler) -> nn.Module:
    network.compile(backend=compiler)
    return network


def has_compiled_part(network: nn.Module, compiler: Compiler) -> nn.Module:
    network.features = as_compiled(network.get_submodule("features"), compiler)
    return network


@pytest.mark.parametrize("has_run", [False, True], ids=["fresh", "has run"])
@pytest.mark.parametrize("compiled", [as_compiled, compiled_in_place, has_compiled_part])
def test_compiled_network_shows_what_plain_hooks_see(
    compiled: Callable[[nn.Module, Compiler], nn.Module], has_run: bool
) -> None:
    compiler, image = Compiler(), random_input(0, 32)
    twin = seeded(Small).eval()
    outputs = outputs_by_plain_hooks(twin, lambda: twin(image))
    own = compiled(seeded(Small).eval(), compiler)
    if has_run:
        plain_pass(own, image)
    own.train()
    before, hooks = state_of(own), hooks_of(own)
    cap = hookviz.capture(own, image, layers_of(outputs))
    assert (state_of(own), hooks_of(own)) == (before, hooks)
    assert_equals(cap, outputs)
    runs = compiler.runs
    assert equal_outputs(plain_pass(own.eval(), image), outputs["head"])
    assert compiler.runs > runs
