"""Where each layer call's input came from, by plain hooks and what torch's dispatcher runs.

Below the functions that a network calls: the dispatcher sees each operation on numbers, with the
tensors that it reads and writes. Layers are the modules in whose calls no other module is called.
"""

import weakref
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

IMAGE = 0


@dataclass(frozen=True)
class DataFlow:
    """One pass.

    Attributes:
        calls: of layers, in order, as addresses write them.
        sources: of each the calls that its inputs were made from, from 1; `IMAGE` is the input.
        output: the same of what the network puts out.
        joins: of each operation outside of layers that brings branches together.
        rows: of the maps that a call puts out.
    """

    calls: tuple[str, ...]
    sources: tuple[frozenset[int], ...]
    output: frozenset[int]
    joins: Counter[frozenset[int]]
    rows: dict[int, int]


def data_flow(network: nn.Module, image: Tensor) -> DataFlow:
    """Run a network as it is, in its own mode, and tell where everything came from."""
    flow = _Flow()
    handles = []
    for name, module in network.named_modules():
        if name:
            handles.append(module.register_forward_pre_hook(flow.begin(name), with_kwargs=True))
            handles.append(module.register_forward_hook(flow.end, with_kwargs=True))
    given = image.clone()
    flow.mark([given], frozenset((IMAGE,)))
    try:
        with torch.no_grad(), flow:
            output = network(given)
    finally:
        for handle in handles:
            handle.remove()
    return flow.told(flow.of(output))


@dataclass
class _Call:
    """A call of a module, or an operation that joins branches, which has no name."""

    name: str
    sources: frozenset[int]
    within: int = 0
    versions: tuple[int, ...] = ()
    has_calls_inside: bool = False
    rows: int = 0


class _Flow(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Marks each tensor with the calls and joins that it was made from."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls: dict[int, _Call] = {}
        self._running: list[int] = []
        self._counts = Counter[str]()
        self._marks: dict[int, tuple[weakref.ref[Tensor], frozenset[int]]] = {}

    def told(self, output: frozenset[int]) -> DataFlow:
        layers = [key for key, call in self._calls.items() if not call.has_calls_inside]
        layers = [key for key in layers if self._calls[key].name]
        numbers = {key: number for number, key in enumerate(layers, 1)} | {IMAGE: IMAGE}

        def of(keys: frozenset[int]) -> frozenset[int]:
            """Go on through joins to the layers before them."""
            return frozenset().union(
                *(
                    {numbers[key]} if key in numbers else of(self._calls[key].sources)
                    for key in keys
                )
            )

        joins = [call for call in self._calls.values() if not call.name]
        return DataFlow(
            tuple(self._calls[key].name for key in layers),
            tuple(of(self._calls[key].sources) for key in layers),
            of(output),
            Counter(
                of(join.sources)
                for join in joins
                if not join.within or self._calls[join.within].has_calls_inside
            ),
            {numbers[key]: rows for key in layers if (rows := self._calls[key].rows)},
        )

    def of(self, values: Any) -> frozenset[int]:
        marks = (self._marks.get(id(each)) for each in _tensors(values))
        return frozenset().union(*(mark[1] for mark in marks if mark and mark[0]() is not None))

    def mark(self, tensors: Iterable[Tensor], calls: frozenset[int]) -> None:
        for each in tensors:
            self._marks[id(each)] = weakref.ref(each), calls

    def begin(self, name: str) -> Any:
        def hook(_module: nn.Module, args: Any, kwargs: Any) -> None:
            if self._running:
                self._calls[self._running[-1]].has_calls_inside = True
            count = self._counts[name]
            self._counts[name] += 1
            given = _tensors((args, kwargs))
            self._running.append(len(self._calls) + 1)
            self._calls[self._running[-1]] = _Call(
                f"{name}#{count}" if count else name,
                self.of(given),
                versions=tuple(each._version for each in given),
            )

        return hook

    def end(self, _module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        key = self._running.pop()
        call = self._calls[key]
        if call.has_calls_inside:
            return output
        given = _tensors((args, kwargs))
        is_written = tuple(each._version for each in given) != call.versions
        if not is_written and any(output is each for each in given):
            output = output.detach()  # an Identity's, apart from other ways of its input
        made = _tensors(output)
        self.mark(made, frozenset((key,)))
        call.rows = next((each.shape[-2] for each in made if each.ndim == 4), 0)
        return output

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = _tensors((args, kwargs))
        name = func._schema.name.removeprefix("aten::")
        parts = [self.of([each]) for each in given]
        if name.startswith("new_") or name.endswith("_like"):
            parts = []  # they read a size alone
        calls = frozenset().union(*parts)
        output = func(*args, **(kwargs or {}))
        if len(calls) > 1 and calls not in parts:
            within = self._running[-1] if self._running else 0
            self._calls[len(self._calls) + 1] = _Call("", calls, within)
            calls = frozenset((len(self._calls),))
        made = _tensors(output)
        self.mark(made, calls)
        if func._schema.is_mutable:
            self._mark_what_shares_memory(made, calls)
        return output

    def _mark_what_shares_memory(self, made: list[Tensor], calls: frozenset[int]) -> None:
        where = {each.untyped_storage().data_ptr() for each in made}
        for reference, before in list(self._marks.values()):
            other = reference()
            if other is None or any(other is each for each in made):
                continue
            if other.untyped_storage().data_ptr() in where:
                self.mark([other], before | calls)


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]
