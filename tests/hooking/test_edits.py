import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, ResNet

import hookviz
from hookviz import edits
from hookviz.errors import SettingError
from tests.library_alone import ROOT
from tests.networks import Tiny, hook_count, random_input, seeded
from tests.small_transformers import torchvision_swin, torchvision_vit


def test_without_a_channel_the_score_is_captums() -> None:
    import captum.attr  # noqa: PLC0415

    network, image = seeded(Tiny).eval(), random_input(0)
    masks = torch.arange(4).reshape(1, 4, 1, 1)  # a feature for each channel
    theirs = captum.attr.LayerFeatureAblation(network, network.conv1).attribute(
        image, target=2, layer_mask=masks
    )
    with torch.no_grad():
        score = network(image)[0, 2]
        for channel in range(4):
            with hookviz.edit(network, {"conv1": edits.zero([channel])}):
                drop = score - network(image)[0, 2]
            torch.testing.assert_close(drop, theirs[0, channel, 0, 0])


_TORCHLENS = """
import warnings
import torch, torchlens, hookviz
from tests.networks import Tiny, random_input, seeded

network, image = seeded(Tiny).eval(), random_input(0)
other = random_input(1).expand(1, 3, 16, 16)
vector, values = torch.arange(4.0).reshape(4, 1, 1), torch.ones(1, 4, 16, 16)
pairs = [
    (torchlens.zero_ablate(), hookviz.edits.zero),
    (torchlens.scale(-2.0), hookviz.edits.scale(-2)),
    (torchlens.add(vector), hookviz.edits.add(vector.flatten())),
    (torchlens.replace_with(values), hookviz.edits.replace(values)),
]
warnings.simplefilter("ignore")  # a trace says that it is changed in place
for theirs, ours in pairs:
    ready = torchlens.options.CaptureOptions(intervention_ready=True)
    trace = torchlens.trace(network, image, capture=ready)
    trace.do(torchlens.module("conv1"), theirs)
    expected = trace[trace.output_layers[0]].out
    with torch.no_grad(), hookviz.edit(network, {"conv1": ours}):
        found = network(image)
    torch.testing.assert_close(found, expected.detach())
    assert not torch.allclose(found, network(image))
"""


@pytest.mark.by_day
def test_edits_equal_the_interventions_of_torchlens() -> None:
    """In a process of its own: importing torchlens changes torch."""
    subprocess.run([sys.executable, "-c", _TORCHLENS], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: edits.scale("twice"), "factor='twice' is no numbers. A number is"),
        (lambda: edits.zero(channels=[-1]), r"channels=\[-1\] are no numbers of channels"),
        (lambda: edits.keep([True]), "are no numbers of channels"),
        (lambda: edits.zero(cells="a"), "cells='a' are no places of cells"),  # type: ignore[arg-type]
        (lambda: hookviz.edit(seeded(Tiny), "conv1", None).__enter__(), "is no edit"),
        (lambda: hookviz.edit(seeded(Tiny), "conv1", 3).__enter__(), "is no edit"),
        (lambda: hookviz.edit(seeded(Tiny), "conv1", edits.scale).__enter__(), "is no edit"),
    ],
)
def test_what_is_no_edit_is_refused(make: Any, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        make()


def plainly(network: nn.Module, layer: str, images: Tensor, write: Callable[..., None]) -> Tensor:
    """The output with a plain hook that writes into a copy of what the layer puts out."""

    def hook(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        output = output.clone()
        write(output)
        return output

    handle = network.get_submodule(layer).register_forward_hook(hook)
    with torch.no_grad():
        found: Tensor = network(images)
    handle.remove()
    return found


def edited(network: nn.Module, layer: str, images: Tensor, edit: Any) -> Tensor:
    with torch.no_grad(), hookviz.edit(network, {layer: edit}):
        found: Tensor = network(images)
    assert hook_count(network) == 0
    return found


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[str, ...], int]] = {
    "conv": (Tiny, ("conv1", "conv2"), 1),
    "resnet": (lambda: ResNet(BasicBlock, [1, 1, 1, 1]), ("layer2.0.conv1", "layer3"), 1),
    "vit": (
        torchvision_vit,
        ("encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_1.mlp.0"),
        -1,
    ),
    "swin": (torchvision_swin, ("features.1.0", "features.1.1.norm1"), -1),
}
CASES = [(name, layer) for name, (_, layers, _) in NETWORKS.items() for layer in layers]


@pytest.mark.parametrize(("name", "layer"), CASES)
def test_edits_equal_plain_hooks(name: str, layer: str) -> None:
    build, _, axis = NETWORKS[name]
    network, images = seeded(build).eval(), random_input(0, 32)
    cap = hookviz.capture(network, random_input(1, 32)[0], [layer])
    other = cap[layer].raw
    vector = torch.arange(other.shape[axis if axis < 0 else 0], dtype=torch.float32)
    along = vector.reshape(-1, *[1] * (other.ndim - 1)) if axis == 1 else vector
    every_other = range(0, len(vector), 2)
    cell: Any = (0,) if name == "vit" else (0, 1)

    def channels(output: Tensor) -> Tensor:
        return output.movedim(axis, 1)[:, every_other]

    def put(output: Tensor, values: Any) -> None:
        output.movedim(axis, 1)[:, every_other] = values

    def put_cell(output: Tensor) -> None:
        output.movedim(axis, 1)[:, :, *cell] *= 3

    def keep(output: Tensor) -> None:
        before = channels(output).clone()
        output.zero_()
        put(output, before)

    pairs: list[tuple[Any, Callable[[Tensor], Any]]] = [
        (edits.zero, lambda output: output.zero_()),
        (edits.zero(channels=every_other), lambda output: put(output, 0)),
        (edits.scale(0.3), lambda output: output.mul_(0.3)),
        (edits.scale(3, cells=[cell]), put_cell),
        (edits.add(vector), lambda output: output.add_(along)),
        (edits.add(other), lambda output: output.add_(other)),
        (edits.replace(cap[layer]), lambda output: output.copy_(other.expand_as(output))),
        (
            edits.replace(cap[layer], channels=every_other),
            lambda output: put(output, channels(other.expand_as(output))),
        ),
        (edits.keep(every_other), keep),
    ]
    plain = edited(network, layer, images, lambda call: None)
    for edit, write in pairs:
        found = edited(network, layer, images, edit)
        assert torch.equal(found, plainly(network, layer, images, write)), edit
        assert not torch.equal(found, plain), edit


def test_of_several_tensors_the_first_is_edited_blocks_nest_and_rows_follow_each_other() -> None:
    network = nn.LSTM(2, 2, batch_first=True)
    given = torch.ones(1, 3, 2)
    with torch.no_grad():
        with hookviz.edit(network, {"": edits.zero(channels=[1])}):
            found, state = network(given)
        expected, expected_state = network(given)
    assert torch.equal(found[..., 0], expected[..., 0])
    assert not found[..., 1].any()
    assert all(map(torch.equal, state, expected_state))
    same, images = nn.Sequential(nn.Identity()), torch.ones(1, 2)
    vector = torch.ones(2, requires_grad=True)
    both = {"0": edits.add(vector), nn.Identity: edits.scale(3)}
    with hookviz.edit(same, both), hookviz.edit(same, "0", edits.zero(channels=[1])):
        edited_twice = same(images)
    assert edited_twice.tolist() == [[6, 0]]
    assert same(images).tolist() == [[1, 1]]
    edited_twice.sum().backward()
    assert vector.grad is not None
    assert vector.grad.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("layer", "edit", "words"),
    [
        ("conv1", edits.zero(channels=[4]), "no channel 4 in layer 'conv1': they go from 0 to 3"),
        ("conv1", edits.zero(cells=[(0, 16)]), r"no cell \(0, 16\) .* from \(0, 0\) to \(15, 15\)"),
        ("conv1", edits.zero(cells=[3]), "no cell 3 in layer 'conv1'"),
        (
            "conv1",
            edits.add(torch.ones(2, 3)),
            "add at 'conv1': 2×3 numbers are given for an output of 1×4×16×16. These fit: "
            "one number or a tensor of 4×16×16",
        ),
        (
            "conv1",
            edits.add(torch.ones(5)),
            r"fit: one number, 4 numbers \(one a channel\) or a tensor",
        ),
        ("", edits.zero(channels=[5]), "no channel 5"),
        ("square", edits.zero(channels=[0]), "counts channels is not known"),
    ],
)
def test_what_does_not_fit_is_refused(layer: str, edit: Any, words: str) -> None:
    class Square(nn.Module):  # four axes, of which nobody says which are channels
        def forward(self, images: Tensor) -> Tensor:
            return images[:, :, :3, :3]

    network = nn.Sequential(OrderedDict(square=Square())) if layer == "square" else seeded(Tiny)
    with pytest.raises(SettingError, match=words), hookviz.edit(network, {layer: edit}):
        network(random_input(0))
    assert hook_count(network) == 0
    if layer == "square":
        with hookviz.edit(network, {layer: edits.zero}):
            assert not network(random_input(0)).any()


def test_what_a_capture_of_a_batch_has_is_put_in_place() -> None:
    network, images = seeded(Tiny), torch.cat([random_input(1), random_input(2)])
    cap = hookviz.capture(network, images, "conv1")
    with torch.no_grad(), hookviz.edit(network, {"conv1": hookviz.edits.replace(cap["conv1"])}):
        found = network(torch.zeros_like(images))
    torch.testing.assert_close(found, network(images))
