"""Warn of the layers that an instrument can't look at, or that did not run; the pass goes on."""

import sys
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.utils import _python_dispatch

from hookviz.hooking.failing_call import first_line
from hookviz.hooking.modules import compiled_parts, is_within, named_modules, network_of
from hookviz.hooking.torch_functions import not_followed

_INSIDE = ("hookviz", "contextlib")
_NAMED = 3  # layers in a warning
_PASSIVE = (nn.Identity, _DropoutNd)  # which code need not call where they do nothing
_NO_CALLS = (
    "a program that torch.compile made calls no layers. Run the network itself, such as "
    'compiled._orig_mod, or call it within torch.compiler.set_stance("force_eager").'
)


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
            warn(
                f"{self._instrument} can't look at {layer or 'the network itself'} and goes on "
                f"without: {first_line(error)}"
            )


def _without_modes() -> AbstractContextManager[Any]:
    if _python_dispatch.is_in_torch_dispatch_mode():
        return _python_dispatch._disable_current_modes()
    return nullcontext()


@contextmanager
def unseen_layers(
    instrument: str,
    given: object,
    chosen: Collection[str],
    by_name: Collection[str] = (),
    *,
    passes: str = "passes",
) -> Iterator[set[str]]:
    """Yield a set for the names of modules that run, and warn of chosen layers that are not in it.

    Once, as the block ends without an error. Where there are others to name, blocks and layers that
    do nothing are named only where they were chosen by name.

    Args:
        instrument: that looks at them, for the message.
        given: the network as a person gave it.
        chosen: names of layers.
        by_name: the names that were given as such.
        passes: that it looks at, in words.
    """
    ran: set[str] = set()
    yield ran
    unseen = [name for name in chosen if name not in ran]
    if not unseen:
        return
    network, compiled = network_of(given), compiled_parts(given)
    if not ran and "" not in compiled:
        warn(
            f"{instrument} saw nothing: the block ran no {passes} of this "
            f"{type(network).__name__}. A copy is another network, and one that torch.compile made "
            "calls no layers."
        )
        return
    every = dict(named_modules(network, remove_duplicate=False))
    named = [name for name in unseen if name in by_name or _would_run(every.get(name))]
    if not named and len(unseen) == len(chosen):
        named = unseen
    reasons: dict[str, list[str]] = {}
    for name in named:
        reasons.setdefault(_reason(name, every, compiled), []).append(name)
    if named:
        warn(
            " ".join(
                f"{instrument} saw no call of {shortened(names)}: {reason}"
                for reason, names in reasons.items()
            )
        )


def _would_run(module: nn.Module | None) -> bool:
    """Return whether a module is a layer without parts that code has to call for what it does."""
    if module is None or isinstance(module, _PASSIVE):
        return False
    return not any(module.children()) and type(module).forward is not nn.Module.forward


def _reason(name: str, every: Mapping[str, nn.Module], compiled: Collection[str]) -> str:
    if is_within(name, compiled):
        return _NO_CALLS
    if isinstance(every.get(name.rpartition(".")[0]), nn.MultiheadAttention):
        return "torch.nn.MultiheadAttention uses its weights without calling it."
    return "the passes in the block did not call it."


def shortened(names: list[str]) -> str:
    """Join the names of layers; the first few of many."""
    shown = [name or "the network itself" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        shown.append(f"{len(names) - _NAMED} more")
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last


def warn(text: str) -> None:
    """Warn at the line of the first caller that is not in HookViz."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)


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
