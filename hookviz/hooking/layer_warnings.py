"""Warn of the layers that an instrument can't observe, or that did not run; the pass goes on."""

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
_MOST_NAMED = 3  # layers in a warning
_PASSIVE = (nn.Identity, _DropoutNd)  # code may skip them where they do nothing
_NO_CALLS = (
    "a program that torch.compile made calls no layers. Run the network itself, such as "
    'compiled._orig_mod, or call it within torch.compiler.set_stance("force_eager").'
)


class LayerWarnings:
    """Turns an instrument's own errors in a pass into warnings, one for each layer.

    A `RuntimeWarning` names the layer and the error. Where a filter turns warnings into errors, it
    ends the pass.
    """

    def __init__(self, instrument: str, *lets: type[Exception]) -> None:
        self._instrument = instrument
        self._lets = lets
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def kept_out(self, layer: str | None) -> Iterator[None]:
        """Turn what fails in the block, about one layer, into a warning.

        None is a layer outside the choice, without a warning. No gradients are recorded, and the
        person's own tensor subclasses and modes do not see the block: a selective checkpoint, for
        example, would count its computations as the pass's.
        """
        modes: AbstractContextManager[Any] = nullcontext()
        if _python_dispatch.is_in_torch_dispatch_mode():
            modes = _python_dispatch._disable_current_modes()
        try:
            with not_followed(), modes, torch.no_grad():
                yield
        except self._lets:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tensor or an object of theirs raises
            if layer is not None:
                self._warn(layer, error)

    def _warn(self, layer: str, error: Exception) -> None:
        with self._lock:
            is_known = layer in self._warned
            self._warned.add(layer)
        if not is_known:
            warn(
                f"{self._instrument} can't look at {layer or 'the network itself'} and goes on "
                f"without: {first_line(error)}"
            )


@contextmanager
def unseen_layers(
    instrument: str,
    network: object,
    chosen: Collection[str],
    by_name: Collection[str] = (),
    *,
    passes: str = "passes",
) -> Iterator[set[str]]:
    """Yield a set for the names of modules that run, and warn of chosen layers that are not in it.

    Once, as the block ends without an error. Where there are others to name, blocks and layers that
    do nothing are named only where they were chosen by name.

    Args:
        instrument: name of the observing function, for the message.
        network: as a person gave it.
        chosen: names of layers.
        by_name: layers that were chosen by their names.
        passes: kind of passes that it observes, in words.
    """
    ran: set[str] = set()
    yield ran
    unseen = [name for name in chosen if name not in ran]
    if not unseen:
        return
    module, compiled = network_of(network), compiled_parts(network)
    if not ran and "" not in compiled:
        warn(
            f"{instrument} saw nothing: the block ran no {passes} of this "
            f"{type(module).__name__}. A copy is another network, and one that torch.compile made "
            "calls no layers."
        )
        return
    every = dict(named_modules(module, remove_duplicate=False))
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
    """Return whether a module is a layer without parts that computes only when it is called."""
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
    listed = [name or "the network itself" for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        listed.append(f"{len(names) - _MOST_NAMED} more")
    *first, last = listed
    return f"{', '.join(first)} and {last}" if first else last


def warn(text: str) -> None:
    """Warn at the line of the first caller that is not in HookViz."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def numbers(tensor: Tensor) -> Tensor:
    """Return the values of a tensor of floats as a plain tensor; of a nested one without padding.

    Raises:
        ValueError: the tensor has no data, stands for many within `torch.vmap`, or is being
            traced.
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
