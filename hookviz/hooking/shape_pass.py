"""Run a network for the shapes alone that it gives, without data where that is safe and sooner."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from hookviz.hooking import replicas
from hookviz.hooking.failing_call import failing_call
from hookviz.hooking.forward_pass import input_error, private_replica
from hookviz.hooking.isolation import isolated
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.purity import is_known_code
from hookviz.types import Model

Result = TypeVar("Result")

_FEW_WEIGHTS = 5_000_000  # a pass over so many takes some tens of milliseconds


def pass_without_data(
    model: Model, shape: Sequence[int], follow: Callable[[nn.Module, Tensor], Result]
) -> Result:
    """Return what `follow` makes of a meta replica and an input of `shape`, ``(C, H, W)``.

    On torch's meta device a pass takes milliseconds for the largest network. A person's own code
    is never run there: it may keep what it computed for later, or hand memory to C that isn't
    there. It is followed on a replica with data, over zeros, as is a network whose path depends
    on values, and a small one while the first pass of shapes would load torch's compiler.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    if is_known_code(model.network) and not _is_sooner_with_data(model.network):
        try:
            with _on_meta(model, shape) as (replica, images):
                return follow(replica, images)
        except Exception:  # noqa: BLE001, S110 - whatever meta tensors can't do, real ones decide
            pass
    with private_replica(model) as replica:
        zeros = torch.zeros(1, *shape).to(*device_and_dtype(replica))
        try:
            return follow(replica, zeros.clone())
        except Exception as error:
            with private_replica(model) as other:
                failed = failing_call(other, lambda: other(zeros.to(*device_and_dtype(other))))
            raise input_error(model, shape, error, failed) from error


def _is_sooner_with_data(network: nn.Module) -> bool:
    """Return whether a pass over zeros ends before torch has imported what shapes alone need.

    Many meta functions import ``torch._dynamo`` when they are first called, which takes a second.
    """
    if "torch._dynamo" in sys.modules:
        return False
    return sum(weight.numel() for weight in network.parameters()) < _FEW_WEIGHTS


def pass_at_another_size(
    model: Model, shape: Sequence[int], follow: Callable[[nn.Module, Tensor], object]
) -> None:
    """Have `follow` run a replica over an input of another size, as far as the network goes.

    It may refuse that at its first layer or at its last. timm's networks of one size are made for
    this one first, as timm does that. Without data, but for a person's own code, as
    `pass_without_data`.
    """
    known = is_known_code(model.network)
    try:
        if known and not _is_sooner_with_data(model.network):
            with _on_meta(model, shape) as (replica, images):
                _make_for(replica, shape)
                follow(replica, images)
            return
        with private_replica(model) as replica:
            if known:
                _make_for(replica, shape)
            follow(replica, torch.zeros(1, *shape).to(*device_and_dtype(replica)))
    except Exception:  # noqa: BLE001 - a network may refuse another size in its own way
        return


@contextmanager
def _on_meta(model: Model, shape: Sequence[int]) -> Iterator[tuple[nn.Module, Tensor]]:
    """Make a replica and an input of `shape` that have shapes alone."""
    replica, dtype = replicas.meta_copy(model.network), device_and_dtype(model.network)[1]
    with torch.inference_mode(mode=False), torch.no_grad(), isolated(model.network):
        yield replica, torch.empty(1, *shape, device="meta", dtype=dtype)


def _make_for(network: nn.Module, shape: Sequence[int]) -> None:
    resize: Any = getattr(network, "set_input_size", None)
    if resize is not None:
        resize(img_size=tuple(shape[1:]))
