"""Keep the queries and keys that a pass multiplies, so that each token can be followed."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from hookviz.hooking import hooks
from hookviz.hooking.attention_calls import AttentionCalls, Running
from hookviz.hooking.plain_tensors import kind_of
from hookviz.types import ActivationKey

Factors = tuple[Tensor, Tensor]
"""Queries ``(…, queries, numbers)`` and keys ``(…, keys, numbers)``, of memory of their own."""

_PLAIN_PRODUCTS = frozenset(("matmul", "mm", "bmm", "baddbmm"))
"""Of ``(…, rows, numbers)`` and ``(…, numbers, columns)``."""
_ROWS_BY_ROWS = re.compile(r"\w*(\w)(\w),\w*(\w)\2->\w*\1\3")
"""An einsum of ``(…, rows, numbers)`` and ``(…, columns, numbers)``; others have other axes."""


class AttentionFactors(AttentionCalls):
    """Attention of a pass up to that of one call of a layer, with its queries and keys.

    There it raises `hooks.StopForward`.

    Attributes:
        factors: queries and keys of that call; None before, and where they can't be told.
    """

    def __init__(self, replica: nn.Module, wanted: ActivationKey) -> None:
        super().__init__(replica, frozenset())  # nobody looks at weights
        self.factors: Factors | None = None
        self._wanted = wanted
        self._next: Factors | None = None
        self._of_marks: dict[int, tuple[Any, Factors]] = {}  # with the mark, so that its id is one

    def called(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call `func`, with the queries and keys of torch's own attention at hand."""
        name = getattr(func, "__name__", "")
        self._next = None
        if name in ("scaled_dot_product_attention", "multi_head_attention_forward"):
            given = dict(zip(("query", "key"), args, strict=False)) | dict(kwargs)
            query, key = given["query"], given["key"]
            if name == "multi_head_attention_forward":  # (tokens, batch, numbers), or no batch
                query, key = query.movedim(0, -2), key.movedim(0, -2)
            self._next = _own(query, key)
        return super().called(func, args, kwargs)

    def _multiplied(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        super()._multiplied(name, args, kwargs, output)
        mark = self._marks.get(output) if isinstance(output, Tensor) else None
        rows, columns = _as_matrices(name, args, kwargs)
        if mark is None or rows is None or columns is None:
            return
        if min(rows.ndim, columns.ndim) < 2 or rows.shape[-1] != columns.shape[-2]:
            return
        factors = _own(rows, columns.mT)
        if factors is not None:
            self._of_marks[id(mark)] = mark, factors

    def _normalised(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Tensor) -> None:
        scores = self._marks.get(args[0]) if args and isinstance(args[0], Tensor) else None
        super()._normalised(args, kwargs, output)
        mark = self._marks.get(output)
        _, factors = self._of_marks.get(id(scores), (None, None))
        if mark is None or mark is scores or factors is None:
            return
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        is_turned = dim % output.ndim == output.ndim - 2  # the softmax runs along the rows
        self._of_marks[id(mark)] = mark, factors[::-1] if is_turned else factors

    def _use(self, mark: Any) -> None:
        self._next = self._of_marks.get(id(mark), (None, None))[1]
        super()._use(mark)

    def _add(self, running: Running, weights: Tensor | None) -> None:
        super()._add(running, weights)
        calls = [call.layer for call in self.found]
        if calls[-1] == self._wanted.layer and calls.count(calls[-1]) > self._wanted.call:
            self.factors = self._next
            raise hooks.StopForward
        self._next = None


def _as_matrices(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Return what a product multiplies, ``(…, rows, numbers)`` and ``(…, numbers, columns)``."""
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    if len(tensors) < 2:
        return None, None
    rows, columns = tensors[-2:]
    if name in _PLAIN_PRODUCTS:
        return rows, columns
    if name == "einsum" and _ROWS_BY_ROWS.fullmatch(str(args[0]).replace(" ", "")):
        return rows, columns.mT
    return None, None


def _own(queries: Tensor, keys: Tensor) -> Factors | None:
    if kind_of(queries) or kind_of(keys):
        return None
    return queries.detach().clone(), keys.detach().clone()
