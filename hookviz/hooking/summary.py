"""Print every layer as a pass runs it."""

import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, TextIO

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.failing_call import failing_call, first_line
from hookviz.hooking.hooks import tensors_in
from hookviz.hooking.modules import as_written, compiled_parts, module_named, network_of
from hookviz.hooking.own_network import buffers_put_back
from hookviz.hooking.selection import select
from hookviz.types import Model
from hookviz.wording import byte_size, times


def summary(
    network: nn.Module | Model,
    example: Any,
    *,
    depth: int | None = None,
    file: TextIO | None = None,
) -> Any:
    """Run `network` on `example` and print each layer as it runs: shapes, time and memory.

    A line has the layer's name and class, how long the call took (on a GPU until it was done), the
    bytes of what it put out in memory that it was not given, and the shapes of the tensors that
    went in and came out, batch included. It is an ordinary pass without gradients, of any batch,
    in the mode that the network is in; buffers that it writes, such as averages of batch norms, are
    put back. Compiled parts run as they were written, so that their layers are printed too.

    Args:
        network: as of `observe`.
        example: what it is called with: one argument, a tuple of several, or a dict of named ones.
        depth: None prints every layer without parts; 1 each child of the network, 2 the children
            of those, and so on, with layers without parts where they are less deep.
        file: where to print, standard output by default.

    Returns:
        What the network put out.

    Raises:
        ModelError: the pass fails; it says at which layer, what that was given and takes, and what
            ran before it. Or `network` is no module, or a TorchScript program.
        SettingError: `depth` is no number from 1 on, or the network has no layers.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(inplace=True))
    >>> _ = hookviz.summary(network, torch.ones(2, 3, 8, 8))  # doctest: +ELLIPSIS
    0  Conv2d ... ms    1.2 kB  2×3×8×8 → 2×4×6×6
    1  ReLU   ... ms   0 bytes  2×4×6×6 → 2×4×6×6
    """
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise SettingError(f"depth={shorten(repr(depth))} is neither None nor a number from 1 on.")

    def is_shown(name: str, module: nn.Module) -> bool:
        deep = name.count(".") + 1
        leaf = not any(module.children())
        return leaf if depth is None else deep == depth or (leaf and deep < depth)

    chosen, is_compiled = select(network, is_shown), bool(compiled_parts(network))
    network = network_of(network)
    lines = _Lines(network, chosen, file or sys.stdout)
    output, error = None, None

    def run() -> None:
        nonlocal output, error
        try:
            if isinstance(example, Mapping):
                output = network(**example)
            else:
                output = network(*(example if isinstance(example, tuple) else (example,)))
        except Exception as raised:
            error = raised
            raise

    with (
        as_written if is_compiled else nullcontext(),
        torch.no_grad(),
        buffers_put_back(network),
        hooks.before(network, lines.layers, lines.begin),
        hooks.observe(network, lines.layers, lines.end),
    ):
        failed = failing_call(network, run)
    if error is not None:
        where = f"{failed}: " if failed else ""
        raise ModelError(
            f"This {type(network).__name__} can't take the example: {where}{first_line(error)}."
        ) from error
    return output


class _Lines:
    """Printer of one line for each call."""

    def __init__(self, network: nn.Module, layers: tuple[str, ...], file: TextIO) -> None:
        self.layers = layers
        self._kinds = {name: type(module_named(network, name)).__name__ for name in layers}
        self._names = max(map(len, layers))
        self._kind = max(map(len, self._kinds.values()))
        self._file = file
        self._begun: list[tuple[float, list[tuple[int, ...]], set[int]]] = []

    def begin(self, call: hooks.Call) -> None:
        tensors = [tensor for _, tensor in tensors_in(call.inputs)]
        shapes = [tuple(tensor.shape) for tensor in tensors]
        memory = {_memory(tensor) for tensor in tensors}
        _wait(tensors)
        self._begun.append((time.perf_counter(), shapes, memory))

    def end(self, call: hooks.Call) -> None:
        tensors = [tensor for _, tensor in tensors_in(call.output)]
        _wait(tensors)
        began, shapes, input_shapes = self._begun.pop()
        seconds = time.perf_counter() - began
        new = {_memory(each): each.nelement() * each.element_size() for each in tensors}
        size = byte_size(sum(size for memory, size in new.items() if memory not in input_shapes))
        outputs = [tuple(tensor.shape) for tensor in tensors]
        self._file.write(
            f"{call.layer:<{self._names}}  {self._kinds[call.layer]:<{self._kind}}  "
            f"{seconds * 1000:8.2f} ms  {size:>8}  {_shapes(shapes)} → {_shapes(outputs)}\n"
        )
        self._file.flush()


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _wait(tensors: list[Tensor]) -> None:
    if any(tensor.is_cuda for tensor in tensors):
        torch.cuda.synchronize()


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(times(shape) or "1" for shape in shapes) or "nothing"
