import random
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import hookviz
from hookviz.models.checkpoints.files import USUAL_KEYS, read_checkpoint, read_state_dict
from tests.models.checkpoints.checkpoint_files import STATE, old_format, same, saved
from tests.networks import Tiny, as_model, random_input, seeded

OTHER = {key: value + 1 for key, value in STATE.items()}


ADAM = {"state": {0: {"step": torch.ones(1), "exp_avg": torch.ones(9)}}, "param_groups": [{}]}


WRAPPED: list[dict[Any, Any]] = [
    *({key: STATE, "epoch": 3} for key in USUAL_KEYS),
    {"epoch": 3, "arch": "tiny", "state_dict": STATE, "best_acc1": torch.tensor(71.0)},
    {"model": STATE, "optimizer": ADAM, "args": {"lr": 0.1, "size": torch.ones(2)}},
    {"model": {"state_dict": {"module": STATE}}},
    {"Model": STATE, "model_ema": OTHER},
    {"ema": OTHER, "net": STATE},
    {"state_dict_ema": STATE, "optimizer": ADAM, "rng_state": torch.ones(5)},
    {"ema": {"shadow": STATE}},
    {"generator": STATE, "loss": {"weight": torch.ones(1)}},
    {**STATE, "epoch": 3, "optimizer": ADAM, "_extra_state": None, 7: torch.ones(1)},
    {"backbone_of_mine": STATE, "note": "in two weeks"},
]


@pytest.mark.parametrize("wrapped", WRAPPED, ids=lambda wrapped: "+".join(map(str, wrapped))[:40])
def test_wrappings_come_off(wrapped: dict[Any, Any]) -> None:
    assert same(read_state_dict(saved(wrapped)), STATE)
    found = read_state_dict(saved(OrderedDict(Tiny().half().named_parameters())))
    assert {tensor.dtype for tensor in found.values()} == {torch.float16}  # as they are
    assert not any(tensor.requires_grad for tensor in found.values())


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: torch.zeros(1).expand(10**12),
            "claims 1,000,000,000,000 values, more than the file",
        ),
        (lambda: torch.eye(3).to_sparse(), "is a sparse"),
        (
            lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
            "is quantised",
        ),
        (lambda: torch.zeros(2, dtype=torch.complex64), "holds complex numbers"),
        (lambda: torch.zeros(2, device="meta"), "has a shape and no values"),
    ],
    ids=["expanded", "sparse", "quantised", "complex", "meta"],
)
# torch itself warns about old kinds of tensors, and that it checks sparse ones
@pytest.mark.filterwarnings("ignore:.*(quantize|TypedStorage|sparse)")
def test_tensors_that_are_no_weights_are_refused(make: Callable[[], Tensor], reason: str) -> None:
    data = saved({**STATE, "fc.weight": make()})
    with pytest.raises(
        hookviz.WeightsError, match=rf"^odd\.pth can't be used: fc\.weight {reason}"
    ):
        read_state_dict(data, "odd.pth")


def endless() -> dict[str, Any]:
    nested: dict[str, Any] = STATE
    for _ in range(90):
        nested = {"model": nested, "net": nested}  # shared, so 2 to the power of 90 paths
    return nested


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([STATE], "holds list, not a state dict"),
        (torch.zeros(3), "holds Tensor, not a state dict"),
        ({}, "holds no tensors with names; it holds nothing"),
        ({"epoch": 3, "lr": 0.1}, "holds no tensors with names; it holds epoch, lr"),
        ({"optimizer": ADAM}, "holds no tensors with names; it holds optimizer"),
        (endless(), "holds no tensors with names"),
    ],
)
def test_pickles_without_a_state_dict(value: Any, reason: str) -> None:
    with pytest.raises(hookviz.WeightsError, match=rf"odd\.pth {reason}"):
        read_state_dict(saved(value), "odd.pth")


def test_of_several_one_is_taken_and_the_others_are_named() -> None:
    found = read_checkpoint(saved({"student": STATE, "ema": {"shadow": OTHER}, "optimizer": ADAM}))
    assert (found.key, found.others) == ("student", ("ema.shadow",))
    assert same(found.tensors, STATE)
    few = read_checkpoint(saved({"net": STATE, "loss": {"a": torch.ones(1), "b": torch.ones(1)}}))
    assert (few.key, few.others) == ("net", ())


@pytest.mark.parametrize("key", ["teacher", "teacher.state_dict"])
def test_a_key_takes_another(key: str) -> None:
    data = saved({"student": STATE, "teacher": {"state_dict": OTHER}})
    assert same(read_checkpoint(data, key=key).tensors, OTHER)
    with pytest.raises(hookviz.WeightsError, match=r"key='pupil'; it has 'student'.* 'teacher"):
        read_checkpoint(data, key="pupil")
    flat = {f"student.{key}": tensor for key, tensor in STATE.items()}
    flat |= {f"teacher.{key}": tensor for key, tensor in OTHER.items()}
    taken = read_checkpoint(saved(flat), key="teacher").tensors  # whose names begin with it
    assert same({key.removeprefix("teacher."): t for key, t in taken.items()}, OTHER)


@pytest.mark.parametrize("write", [saved, old_format, safetensors.torch.save])
@pytest.mark.parametrize("file_name", ["w.pth", "w.safetensors", "w"])
def test_the_kind_is_told_by_content_and_not_by_name(
    tmp_path: Path, write: Callable[[Any], bytes], file_name: str
) -> None:
    data = write(STATE)
    (tmp_path / file_name).write_bytes(data)
    assert same(read_state_dict(tmp_path / file_name), STATE)
    assert same(read_state_dict(data, file_name), STATE)


def test_no_such_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(hookviz.WeightsError, match=r'There is no checkpoint .*none\.pth.*"random"'):
        read_state_dict(tmp_path / "none.pth")
    with pytest.raises(hookviz.WeightsError, match="it is a folder"):
        read_state_dict(tmp_path)
    with pytest.raises(hookviz.WeightsError, match="File name too long"):
        read_state_dict(tmp_path / ("x" * 3000))


@pytest.mark.parametrize("write", [saved, old_format, safetensors.torch.save])
def test_damage_anywhere_is_an_error_of_ours_or_harmless(write: Callable[[Any], bytes]) -> None:
    whole = write(STATE)
    rng = random.Random(5)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.25:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            read_state_dict(bytes(damaged))
        except hookviz.WeightsError:
            refused += 1
    assert refused > 400


def test_a_header_that_lies_about_sizes_takes_no_memory() -> None:
    header = b'{"w":{"dtype":"F32","shape":[100000000000],"data_offsets":[0,400000000000]}}'
    with pytest.raises(hookviz.WeightsError, match="cut short or damaged"):
        read_state_dict(len(header).to_bytes(8, "little") + header + bytes(64))


@pytest.mark.parametrize("name", ["shapesnet", "squeezenet1_1"])
@pytest.mark.parametrize("method", ["smallest weights", "channels by L1 norm"])
def test_a_pruned_model_is_had_again_to_the_bit(name: str, method: str, tmp_path: Path) -> None:
    model = hookviz.load_model(name, "random")
    pruned = hookviz.prune(model, 0.5, method)
    path = hookviz.save_weights(pruned, tmp_path / "pruned.safetensors")
    again = hookviz.load_model(name, path)
    image = random_input(2, 64)
    one, other = (hookviz.capture(each, image).logits for each in (pruned, again))
    assert one is not None
    assert other is not None
    assert torch.equal(one, other)
    assert again.digest == pruned.digest
    assert again.weights == "pruned.safetensors"


def test_what_is_pruned_of_a_network_of_ones_own_is_written(noise: Tensor, tmp_path: Path) -> None:
    network = seeded(Tiny)
    pruned = hookviz.prune(network, 0.5)
    written = load_file(hookviz.save_weights(pruned, tmp_path / "pruned.safetensors"))
    assert int((written["conv2.weight"] == 0).sum()) > 0
    assert int((network.conv2.weight == 0).sum()) == 0
    other = seeded(Tiny)
    other.load_state_dict(written)
    shown = hookviz.capture(pruned, noise)["conv2"].values
    assert torch.equal(shown, hookviz.capture(other, noise)["conv2"].values)
    other.load_state_dict(load_file(hookviz.save_weights(network, str(tmp_path / "a.safetensors"))))
    assert torch.equal(other(noise), network(noise))  # of ones own as it stands
    for path, reason in (
        ("tiny.pth", r"tiny.pth.*does not end in .safetensors"),
        ("none/tiny.safetensors", "can't be written: No such file"),
    ):
        with pytest.raises(hookviz.WeightsError, match=reason):
            hookviz.save_weights(network, tmp_path / path)


def test_shared_and_scattered_tensors_are_written(tmp_path: Path) -> None:
    def build() -> nn.Module:
        network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
        network[1].weight = network[0].weight
        network[0].bias = nn.Parameter(torch.arange(6.0)[::2])
        return network

    model = as_model(seeded(build))
    held = load_file(hookviz.save_weights(model, tmp_path / "shared.safetensors"))
    assert held.keys() == model.network.state_dict().keys()
    assert all(torch.equal(held[key], value) for key, value in model.network.state_dict().items())
