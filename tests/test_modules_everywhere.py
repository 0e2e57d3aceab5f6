"""Every public function that takes a `Model` takes a module too, and gives the same for it."""

import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import hookviz
from hookviz.types import Model
from tests.attending import vit
from tests.networks import Tiny, random_input, seeded
from tests.notebook.comms import client_comms
from tests.pictures import encoded, picture


def segmenting() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))


class Callee(NamedTuple):
    """How a function is called, and which network it is given.

    Attributes:
        call: takes a network, a folder of one's own, and the fixture; returns what is compared.
        build: makes the network.
        looks: whether it looks at the network at all: what does not can't refuse another thing.
    """

    call: Callable[[Any, Path], object]
    build: Callable[[], nn.Module] = Tiny
    looks: bool = True


IMAGE = random_input(1)
SHORT = hookviz.MaximizationConfig(size=32)
CHANNEL, CLASS = hookviz.Objective.of_channel("conv2", 1), hookviz.Objective.of_class(2)


def mean(outputs: Any) -> Tensor:
    found: Tensor = outputs["conv2"].mean()
    return found


OWN = hookviz.FunctionObjective("conv2", mean)


def files(folder: Path) -> dict[str, str]:
    """Six pictures in two folders, one for each class."""
    found = {}
    for number in range(6):
        path = folder / "photos" / ("first" if number % 2 else "second") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(picture(number)))
        found[path.name] = str(path)
    return found


def index(folder: Path) -> hookviz.FeatureIndex:
    """An index that belongs to the network of the table."""
    return hookviz.FeatureIndex(hookviz.extract_features(seeded(Tiny), files(folder), "conv2"))


def atlas_of(network: Any, folder: Path) -> hookviz.Atlas:
    images = list(files(folder).values())
    return hookviz.make_atlas(network, images, folder / "a.atlas", layers="conv2", top=2)


def watched(network: Any, _folder: Path) -> object:
    with hookviz.watch(network, record=True) as bad:
        (network.network if isinstance(network, Model) else network)(IMAGE * torch.nan)
    return [str(each) for each in bad]


def called(network: Any) -> Tensor:
    """What a network puts out that HookViz puts hooks on, where a person calls it."""
    inner: nn.Module = network.network if isinstance(network, Model) else network
    scores: Tensor = inner(IMAGE)
    return scores.detach()


def seen(network: Any, _folder: Path) -> object:
    outputs = []
    with hookviz.observe(network, "conv*", lambda call: outputs.append(call.output.detach())):
        called(network)
    return outputs


def edited(network: Any, _folder: Path) -> object:
    with hookviz.edit(network, "conv2", lambda call: call.output * 2):
        return called(network)


DOUBLED = {"conv2": hookviz.edits.scale(2)}


def begun(network: Any, _folder: Path) -> object:
    with hookviz.edit_inputs(network, "conv2", lambda call: call.inputs[0] * 2):
        return called(network)


def paused(network: Any, _folder: Path) -> object:
    layers = []
    with hookviz.breakpoint_at(network, "conv2", lambda call: layers.append(call.layer)):
        called(network)
    return layers


def looked_at(net: Any, _at: Path) -> Any:
    ((_, result),) = hookviz.stream_lens("saliency", net, [IMAGE])
    assert isinstance(result, hookviz.LensResult)
    return result.values


def after_a_step(network: Any) -> list[Tensor | None]:
    """The gradients of a step of training."""
    inner: nn.Module = network.network if isinstance(network, Model) else network
    inner.zero_grad()
    inner(IMAGE).square().sum().backward()
    return [each.grad for each in inner.parameters()]


def with_gradients(network: Any, _folder: Path) -> object:
    with hookviz.on_gradients(network, "conv2") as found:
        after_a_step(network)
    return found["conv2"].outputs


def clipped(network: Any, _folder: Path) -> object:
    with hookviz.clip_gradients(network, 1e-3):
        return after_a_step(network)


def recorded(network: Any, _folder: Path) -> object:
    with hookviz.record(network, layers="conv2") as log:
        after_a_step(network)
    return [row.gradient_norm for row in log.rows]


def replaced(network: Any, _folder: Path) -> object:
    with hookviz.replace_parameters(network, {"conv1.bias": torch.zeros(4)}):
        return called(network)


def explored(network: Any, _folder: Path) -> object:
    with pytest.MonkeyPatch.context() as patch, client_comms(patch):
        patch.setattr("hookviz.exploring.in_notebook", lambda: True)
        return hookviz.explore(network, IMAGE).capture


CALLS: dict[str, Callee] = {
    "Atlas.belongs_to": Callee(lambda net, at: atlas_of(seeded(Tiny), at).belongs_to(net)),
    "Atlas.check": Callee(lambda net, at: atlas_of(seeded(Tiny), at).check(net)),
    "FeatureIndex.check": Callee(lambda net, at: index(at).check(net)),
    "FeatureIndex.nearest": Callee(lambda net, at: index(at).nearest(net, picture(1))),
    "FeatureIndex.similarity": Callee(lambda net, at: index(at).similarity(net, picture(1))),
    "FunctionObjective.check": Callee(lambda net, _: OWN.check(net), looks=False),
    "FunctionObjective.says": Callee(lambda net, _: OWN.says(net), looks=False),
    "Objective.check": Callee(lambda net, _: CLASS.check(net, (5, 1, 1))),
    "Objective.says": Callee(lambda net, _: CLASS.says(net)),
    "Objective.says_alone": Callee(lambda net, _: CLASS.says_alone(net)),
    "ObjectiveSum.check": Callee(lambda net, _: (2 * CLASS).check(net, (5, 1, 1))),
    "ObjectiveSum.says": Callee(lambda net, _: (2 * CLASS).says(net)),
    "edit_inputs": Callee(begun),
    "clip_gradients": Callee(clipped),
    "edit": Callee(edited),
    "observe": Callee(seen),
    "on_gradients": Callee(with_gradients),
    "breakpoint_at": Callee(paused),
    "record": Callee(recorded),
    "replace_parameters": Callee(replaced),
    "summary": Callee(lambda net, _: hookviz.summary(net, IMAGE, file=io.StringIO()).detach()),
    "edited": Callee(lambda net, _: hookviz.capture(hookviz.edited(net, DOUBLED), IMAGE)),
    "patch": Callee(lambda net, _: hookviz.patch(net, IMAGE, IMAGE + 1, "conv2").shares),
    "attention": Callee(lambda net, _: hookviz.attention(net, IMAGE), vit),
    "capture": Callee(lambda net, _: hookviz.capture(net, IMAGE)),
    "stream": Callee(lambda net, _: list(hookviz.stream(net, {"a": IMAGE}))),
    "segmentation_maps": Callee(
        lambda net, _: hookviz.segmentation_maps(net, IMAGE).probabilities, segmenting
    ),
    "explore": Callee(explored),
    "extract_features": Callee(lambda net, at: hookviz.extract_features(net, files(at)).vectors),
    "linear_probe": Callee(
        lambda net, at: files(at) and hookviz.linear_probe(net, at / "photos", folds=2).accuracies
    ),
    "list_layers": Callee(lambda net, _: hookviz.list_layers(net, input_shape=(3, 16, 16))),
    "make_atlas": Callee(lambda net, at: atlas_of(net, at).first_patches("conv2")),
    "draw_network": Callee(lambda net, _: hookviz.draw_network(net, IMAGE).layers),
    "save_live_page": Callee(
        lambda net, at: hookviz.save_live_page(net, at / "net.html", samples=[picture()]).name
    ),
    "maximize_activation": Callee(
        lambda net, _: hookviz.maximize_activation(net, CHANNEL, steps=2, method=SHORT).pictures
    ),
    "prepare_input": Callee(lambda net, _: hookviz.prepare_input(net, picture()).tensor),
    "prune": Callee(lambda net, _: hookviz.capture(hookviz.prune(net, 0.5), IMAGE)["conv2"].values),
    "grad_cam": Callee(lambda net, _: hookviz.grad_cam(net, IMAGE, layer="conv2").values),
    "stream_lens": Callee(looked_at),
    "saliency": Callee(lambda net, _: hookviz.saliency(net, IMAGE).values),
    "integrated_gradients": Callee(
        lambda net, _: hookviz.integrated_gradients(net, IMAGE, steps=3).values
    ),
    "occlusion": Callee(lambda net, _: hookviz.occlusion(net, IMAGE, window=8).values),
    "effective_receptive_field": Callee(
        lambda net, _: hookviz.effective_receptive_field(net, IMAGE, layer="conv2").values
    ),
    "ablate_channels": Callee(
        lambda net, _: hookviz.ablate_channels(net, IMAGE, layer="conv2").score_changes
    ),
    "network_health": Callee(lambda net, _: hookviz.network_health(net, IMAGE).outputs),
    "gradient_flow": Callee(lambda net, _: hookviz.gradient_flow(net, IMAGE).norms),
    "channel_maps": Callee(
        lambda net, _: hookviz.channel_maps(net, IMAGE, images=[IMAGE + 1], layer="conv2").maps
    ),
    "conv_kernels": Callee(lambda net, _: hookviz.conv_kernels(net, layer="conv2").kernels),
    "layer_gradient": Callee(
        lambda net, _: hookviz.layer_gradient(net, IMAGE, layer="conv2").gradient
    ),
    "region_selectivity": Callee(
        lambda net, _: hookviz.region_selectivity(net, IMAGE, region="rect:0,0,0.5,1").score
    ),
    "trace_execution": Callee(lambda net, _: hookviz.trace_execution(net, IMAGE).edges),
    "verify": Callee(lambda net, _: hookviz.verify(net, IMAGE).checks),
    "smallest_change": Callee(
        lambda net, _: hookviz.smallest_change(net, picture(), target=1, steps=2).picture
    ),
    "dream": Callee(lambda net, _: hookviz.dream(net, IMAGE, layer="conv2", steps=2).picture),
    "invert": Callee(lambda net, _: hookviz.invert(net, IMAGE, layer="conv2", steps=2).picture),
    "run_lens": Callee(
        lambda net, _: hookviz.run_lens("grad-cam", net, IMAGE, layer="conv2", target=1).values
    ),
    "save_weights": Callee(
        lambda net, at: load_file(hookviz.save_weights(net, at / "weights.safetensors"))
    ),
    "similarity": Callee(lambda net, at: hookviz.similarity(net, net, files(at)).cka),
    "remove_pruned_channels": Callee(
        lambda net, _: hookviz.remove_pruned_channels(net, IMAGE).removed
    ),
    "watch": Callee(watched),
    "wrap": Callee(lambda net, _: hookviz.capture(hookviz.wrap(net), IMAGE)),
}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, and every public method of a public class."""
    for name in hookviz.__all__:
        value = getattr(hookviz, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for method, own in vars(value).items():
                function = getattr(own, "__func__", own)
                if inspect.isfunction(function) and not method.startswith("_"):
                    yield f"{name}.{method}", function


def kinds_taken(function: Callable[..., Any]) -> set[object]:
    """The types that the function's parameters are annotated with."""
    found: set[object] = set()
    for parameter in inspect.signature(function).parameters.values():
        kinds = (parameter.annotation, *get_args(parameter.annotation))
        found |= {kind for kind in kinds if isinstance(kind, type)}
    return found


def test_every_function_that_takes_a_model_is_in_the_table_and_takes_a_module() -> None:
    takes = {name: kinds for name, each in functions() if Model in (kinds := kinds_taken(each))}
    assert {name for name, kinds in takes.items() if nn.Module not in kinds} == set()
    assert set(takes) == set(CALLS)


def comparable(value: object) -> object:
    """What is compared of a result: numbers as bytes, and no identities."""
    if isinstance(value, hookviz.Capture):
        return value.model, comparable({name: each.values for name, each in value.items()})
    if isinstance(value, Tensor | np.ndarray):
        return value.shape, np.asarray(value).tobytes()
    if isinstance(value, Mapping):
        return {name: comparable(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return [comparable(each) for each in value]  # type: ignore[attr-defined]
    return value if isinstance(value, str | int | float | bytes) else repr(value)


@pytest.mark.parametrize("name", CALLS)
def test_a_module_gives_what_its_model_gives(name: str, tmp_path: Path) -> None:
    call, build, _looks = CALLS[name]
    network = seeded(build)
    if name == "remove_pruned_channels":
        prunes = [network.get_parameter(f"conv1.{kind}") for kind in ("weight", "bias")]
        with torch.no_grad():
            for each in prunes:
                each[1] = 0
    results = []
    for number, given in enumerate((network, hookviz.wrap(network))):
        folder = tmp_path / str(number)
        folder.mkdir()
        results.append(comparable(call(given, folder)))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", [name for name, each in CALLS.items() if each.looks])
def test_anything_else_is_refused_by_the_name_of_its_type(name: str, tmp_path: Path) -> None:
    with pytest.raises(hookviz.ModelError, match=r"not str\."):
        CALLS[name].call("resnet", tmp_path)
