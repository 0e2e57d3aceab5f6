"""Run a network for the shapes alone that it gives, without data where that is safe and sooner."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from hookviz.errors import HookVizError
from hookviz.hooking import hooks, replicas
from hookviz.hooking.device import (
    device_and_dtype,
    dtypes,
    is_dtype_known,
    take_down_dtype,
)
from hookviz.hooking.failing_call import failing_call
from hookviz.hooking.forward_pass import input_error, private_replica
from hookviz.hooking.network_state import is_shared
from hookviz.types import Model

Result = TypeVar("Result")

_FEW_WEIGHTS = 5_000_000  # a pass over so many takes some tens of milliseconds


def pass_without_data(
    model: Model, shape: Sequence[int], follow: Callable[[nn.Module, Tensor], Result]
) -> Result:
    """Return what `follow` makes of the network and an input of `shape`, ``(C, H, W)``.

    Of the catalog's networks a meta replica, where a pass takes milliseconds for the largest. A
    person's own code is run on zeros, as is a network whose path depends on values, and a small one
    while the first pass of shapes would load torch's compiler. Where its weights have several
    precisions, that of its input is found here, the finest first.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    network = model.network
    if is_shared(network) and not _is_sooner_with_data(network):
        try:
            with _on_meta(network, shape) as (replica, images):
                return follow(replica, images)
        except Exception:  # noqa: BLE001, S110 - whatever meta tensors can't do, real ones decide
            pass
    with private_replica(model) as lent:
        find_dtype(lent, shape)
        zeros = _zeros(lent, shape)
        try:
            return follow(lent, zeros.clone())
        except HookVizError:  # of a look within the pass, which has said what is wrong
            raise
        except Exception as error:
            failed = None
            with suppress(hooks.StopForward):
                failed = failing_call(lent, lambda: lent(zeros))
            raise input_error(model, shape, error, failed) from error


def find_dtype(network: nn.Module, shape: Sequence[int]) -> None:
    """Find the finest precision that the input may have, where the weights have several."""
    several = dtypes(network)
    if len(several) == 1 or is_dtype_known(network):
        return
    for dtype in several:
        take_down_dtype(network, dtype)
        with suppress(Exception):
            network(_zeros(network, shape))
            return
    take_down_dtype(network, None)


def _zeros(network: nn.Module, shape: Sequence[int]) -> Tensor:
    return torch.zeros(1, *shape).to(*device_and_dtype(network))


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
    network = model.network
    try:
        if not is_shared(network):
            with private_replica(model) as own:
                follow(own, _zeros(own, shape))
        elif _is_sooner_with_data(network):
            with torch.inference_mode(mode=False), torch.no_grad():
                replica = _made_for(replicas.replicate(network), shape)
                follow(replica, _zeros(replica, shape))
        else:
            with _on_meta(network, shape) as (replica, images):
                follow(_made_for(replica, shape), images)
    except Exception:  # noqa: BLE001 - a network may refuse another size in its own way
        return


@contextmanager
def _on_meta(network: nn.Module, shape: Sequence[int]) -> Iterator[tuple[nn.Module, Tensor]]:
    """Make a replica and an input of `shape` that have shapes alone."""
    dtype = device_and_dtype(network)[1]
    with torch.inference_mode(mode=False), torch.no_grad():
        yield replicas.meta_copy(network), torch.empty(1, *shape, device="meta", dtype=dtype)


def _made_for(network: nn.Module, shape: Sequence[int]) -> nn.Module:
    resize: Any = getattr(network, "set_input_size", None)
    if resize is not None:
        resize(img_size=tuple(shape[1:]))
    return network
