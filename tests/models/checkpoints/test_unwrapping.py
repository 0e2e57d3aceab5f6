from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.models.checkpoints import unwrapping
from hookviz.models.checkpoints.reading import read_checkpoint, read_state_dict
from tests.models.checkpoints.checkpoint_files import STATE, same, saved
from tests.networks import Tiny

OTHER = {key: value + 1 for key, value in STATE.items()}


ADAM = {"state": {0: {"step": torch.ones(1), "exp_avg": torch.ones(9)}}, "param_groups": [{}]}


WRAPPED: list[dict[Any, Any]] = [
    *({key: STATE, "epoch": 3} for key in unwrapping.USUAL_KEYS),
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
