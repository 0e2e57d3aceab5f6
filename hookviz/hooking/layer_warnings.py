"""Warn once for each layer that an instrument can't look at, and let the pass go on."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils import _python_dispatch

from hookviz.hooking.failing_call import first_line
from hookviz.hooking.torch_functions import not_followed


class LayerWarnings:
    """Keeps an instrument's own errors out of a pass, and warns of them once for each layer.

    A `RuntimeWarning` names the layer and what went wrong. Where warnings are made errors, that is
    one too and ends the pass, as whoever made them errors wants it.
    """

    def __init__(self, instrument: str, *lets: type[Exception]) -> None:
        self._instrument = instrument
        self._lets = lets
        self._said: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def kept_out(self, layer: str | None) -> Iterator[None]:
        """Turn what fails in the block, about one layer, into a warning.

        Nothing is said of None, a layer that nobody asked for. No gradients are recorded, and
        neither tensor subclasses nor modes of the person's own see anything of the look: a
        selective checkpoint, for one, would take what it computes for the pass's.
        """
        try:
            with not_followed(), _without_modes(), torch.no_grad():
                yield
        except self._lets:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tensor or an object of theirs raises
            if layer is not None:
                self._say(layer, error)

    def _say(self, layer: str, error: Exception) -> None:
        with self._lock:
            known = layer in self._said
            self._said.add(layer)
        if not known:
            warnings.warn(
                f"{self._instrument} can't look at {layer or 'the network itself'} and goes on "
                f"without: {first_line(error)}",
                RuntimeWarning,
                stacklevel=2,
            )


def _without_modes() -> AbstractContextManager[Any]:
    if _python_dispatch.is_in_torch_dispatch_mode():
        return _python_dispatch._disable_current_modes()
    return nullcontext()


def numbers(tensor: Tensor) -> Tensor:
    """Return what is in a tensor of floats as plain memory; of a nested one without padding.

    Raises:
        ValueError: nothing that can be looked at: the tensor has no data, is one of many within
            `torch.vmap`, or what is done with it goes into a program.
    """
    if torch._C._get_tracing_state():  # of torch.jit.trace
        raise ValueError("it is being traced, and the look would be part of the program.")
    if tensor.is_meta:
        raise ValueError("a tensor on the meta device has no numbers.")
    values = unwrapped(tensor.detach())
    if values.is_nested:
        values = values.values()
    elif values.layout is not torch.strided:
        values = values.to_dense()
    # Of float8, torch computes next to nothing.
    return values.float() if values.dtype.itemsize == 1 else values


def unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor inside the wrappers of `torch.func`, which are of no use outside.

    Raises:
        ValueError: it stands for many, within `torch.vmap`.
    """
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            raise ValueError("it runs within torch.vmap, where a tensor stands for many.")
        tensor = functorch.get_unwrapped(tensor)
    return tensor
