"""What an instrument on a person's own network can't look at: said once, and the pass goes on."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from hookviz.hooking.failing_call import first_line
from hookviz.hooking.torch_functions import not_followed


class Trouble:
    """Keeps an instrument's own errors out of the pass, and warns of them once for each layer.

    A `RuntimeWarning` names the layer and what went wrong. Where warnings are made errors, that is
    one too and ends the pass, as whoever made them errors wants it.
    """

    def __init__(self, instrument: str, *lets: type[Exception]) -> None:
        """Begin with nothing said.

        Args:
            instrument: the function that the person called.
            lets: what it has to say, and goes through.
        """
        self._instrument = instrument
        self._lets = lets
        self._said: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def kept_out(self, layer: str | None) -> Iterator[None]:
        """Look at something of a layer: what fails in this block is said, and goes no further.

        Nothing is said of None, a layer that nobody asked for. No gradients are recorded, and
        tensor subclasses and torch function modes of the person's own see nothing of the look.
        """
        try:
            with not_followed(), torch.no_grad():
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


def numbers(tensor: Tensor) -> Tensor:
    """What is in a tensor, as plain memory: of a nested one without padding, else all of it.

    Raises:
        ValueError: nothing that can be looked at: the tensor has no data, or is one of many within
            `torch.vmap`.
    """
    if tensor.is_meta:
        raise ValueError("a tensor on the meta device has no numbers.")
    values = unwrapped(tensor.detach())
    if values.is_nested:
        return values.values()
    return values if values.layout is torch.strided else values.to_dense()


def unwrapped(tensor: Tensor) -> Tensor:
    """The tensor without what `torch.func` wraps around it, which is of no use outside.

    Raises:
        ValueError: it stands for many, within `torch.vmap`.
    """
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            raise ValueError("it runs within torch.vmap, where a tensor stands for many.")
        tensor = functorch.get_unwrapped(tensor)
    return tensor
