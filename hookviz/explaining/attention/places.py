"""Find where on the image the queries and keys of a layer's attention lie, windows and shifts too.

It is proven by moving. The layer, or the block around it whose input is known to be maps, is run on
what it was given, with the vectors of some cells changed: those whose number has a certain binary
digit, and then those that lack it. A query or key that lies on one cell moves in just one of every
two passes, and which it was spells the cell's number. One that never moves lies on no cell, as a
class token, or what pads a window. One that moves in both is made of several cells: then nothing is
said. Windows, shifted windows, grids and tokens in any order come out alike, none of them guessed.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.hooking import hooks
from hookviz.hooking.attention_calls import AttentionCalls, Running
from hookviz.hooking.device import with_numbers
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.torch_functions import kind_of
from hookviz.types import FIRST, UNKNOWN, VECTORS, ActivationKey, Layout, Model, ModelInput

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


NOWHERE = -1
"""Stands for the cell of a query or key that lies on none."""

_MOVED = 1e-4  # of the largest value: more than rounding differs between passes
_CLASS_TOKENS = frozenset(("cls_token", "class_token", "class_embedding", "cls"))


@dataclass(frozen=True, eq=False, slots=True)
class AttentionPlaces:
    """Cells of each query and key: cells of a grid that covers the image, counted row by row.

    Attributes:
        grid: rows and columns of the cells.
        queries: the cell of each query, int64 ``(windows, queries)``, `NOWHERE` for none.
        keys: likewise of each key, ``(windows, keys)``.
        head_axis: which axis of the weights, counted from the end, is the heads'.
        class_token: the query that is the class token, where the network calls it so; else None.
    """

    grid: tuple[int, int]
    queries: Tensor = field(repr=False)
    keys: Tensor = field(repr=False)
    head_axis: int
    class_token: int | None

    def by_window(self, weights: Tensor) -> Tensor:
        """View weights as ``(windows, heads, queries, keys)``, in the order of the places."""
        heads = weights.movedim(self.head_axis, -3)
        return heads.reshape(-1, *heads.shape[-3:])


@with_numbers
def attention_places(
    model: Model, model_input: ModelInput, layer: str, weights: Tensor
) -> AttentionPlaces | None:
    """Find where the queries and keys of a layer's attention lie; None where it can't be proven.

    `layer` is the written address of `weights`, as `hookviz.attention` names them.

    Raises:
        ModelError: the network can't take this input.

    >>> from hookviz.explaining.attention.places import attention_places
    >>> from torchvision.models import VisionTransformer
    >>> sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "mlp_dim": 16}
    >>> network = VisionTransformer(image_size=32, patch_size=8, **sizes)
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=32, crop=32))
    >>> found = hookviz.attention(model, "assets/samples/cat.jpg")
    >>> layer = "encoder.layers.encoder_layer_1.self_attention"
    >>> places = attention_places(model, found.model_input, layer, found[layer])
    >>> places.grid, places.queries[0, :3].tolist(), places.class_token
    ((4, 4), [-1, 0, 1], 0)
    """
    trace = input_trace(model, model_input)
    calls = (ActivationKey(name, n) for name, count in trace.calls.items() for n in range(count))
    address = next((each for each in calls if str(each) == layer), ActivationKey(layer))
    around = _around(trace, address.layer)
    if around is None:
        return None
    with private_replica(model) as replica:
        run = _Run(model, model_input, replica, *around)
        codes = run.codes(address)
    return None if codes is None else _placed(model, run.grid, codes, weights)


def _around(trace: LayerTrace, layer: str) -> tuple[str, Layout] | None:
    """Return the innermost module around the attention that is given maps or tokens, once."""
    name = layer
    while name:
        layout = trace.taken.get(ActivationKey(name), UNKNOWN)
        if layout.batch and layout.order not in {"", VECTORS} and trace.calls.get(name) == 1:
            return name, layout
        name = name.rpartition(".")[0]
    return None


class _Run:
    """A module that is run alone on what the network gives it, with some cells changed."""

    def __init__(
        self,
        model: Model,
        model_input: ModelInput,
        replica: nn.Module,
        name: str,
        layout: Layout,
    ) -> None:
        self._replica, self._layout = replica, layout
        self._module, self._name = replica.get_submodule(name), name
        self._positional: list[Any] = []
        self._named: dict[str, Any] = {}
        with hooks.before(replica, [name], self._take):
            forward_pass(model, replica, model_input.tensor)
        maps = layout.maps(self._positional[0]) if self._fits() else torch.empty(0, 0, 0, 0)
        self.grid = (maps.shape[-2], maps.shape[-1])
        draws = torch.Generator().manual_seed(0)
        noise = torch.randn(maps.shape, generator=draws).to(maps)
        self._noise = noise * (1 + maps.abs().max()) if maps.numel() else noise

    def codes(self, address: ActivationKey) -> tuple[Tensor, Tensor] | None:
        """Return the cells of queries and keys, ``(…, queries)`` and ``(…, keys)``."""
        cells = self.grid[0] * self.grid[1]
        if not cells:
            return None
        first = self._factors(None, address)
        if first is None:
            return None
        numbers = torch.arange(cells)
        found: list[list[Tensor]] = [[], []]
        for digit in range(max(1, (cells - 1).bit_length())):
            has = (numbers >> digit & 1).bool()
            for chosen in (has, ~has):
                moved = self._factors(chosen, address)
                if moved is None:
                    return None
                for side, before, after in zip(found, first, moved, strict=True):
                    if before.shape != after.shape:
                        return None
                    far = (after - before).abs() > _MOVED * before.abs().max()
                    side.append(far.any(-1))
        queries, keys = map(_spelled, found)
        return None if queries is None or keys is None else (queries, keys)

    def _take(self, call: hooks.Call) -> None:
        positional, self._named = call.arguments
        self._positional = list(positional)
        raise hooks.StopForward

    def _fits(self) -> bool:
        """Return whether the module's first argument is a tensor whose cells can be changed."""
        given = self._positional
        if not given or not isinstance(given[0], Tensor) or not given[0].is_floating_point():
            return False
        shape = tuple(given[0].shape)
        if len(shape) < 3 or shape[0] != 1 or self._layout.of(shape[1:]).order == VECTORS:
            return False
        return self._layout.order != FIRST or len(shape) == 4

    def _factors(self, chosen: Tensor | None, address: ActivationKey) -> Factors | None:
        """Run the module with the chosen cells changed, and return queries and keys there."""
        first = self._positional[0]
        given = first.clone()
        if chosen is not None:
            mask = chosen.reshape(self.grid).to(given)
            self._layout.maps(given).add_(self._noise * mask)
        calls = AttentionFactors(self._replica, address)
        # Torch's own layer is given one tensor three times: for queries, keys and values.
        others = [given if each is first else each for each in self._positional]
        named = {word: given if each is first else each for word, each in self._named.items()}
        try:
            with suppress(hooks.StopForward), calls.watching():
                self._module(*others, **named)
        except Exception:  # noqa: BLE001 - a person's own code may fail on other values
            return None
        return calls.factors


def _spelled(moved: list[Tensor]) -> Tensor | None:
    """Return the numbers that pairs of passes spell; None where something is made of several."""
    cells = torch.zeros(moved[0].shape, dtype=torch.int64)
    still = ~torch.stack(moved).any(0).cpu()
    for digit, (has, lacks) in enumerate(zip(moved[::2], moved[1::2], strict=True)):
        if bool((~still & (has == lacks).cpu()).any()):
            return None
        cells += has.cpu().long() << digit
    return cells.masked_fill(still, NOWHERE)


def _placed(
    model: Model,
    grid: tuple[int, int],
    codes: tuple[Tensor, Tensor],
    weights: Tensor,
) -> AttentionPlaces | None:
    """Return the places by window, if they fit the weights and no head differs from another."""
    spread = []
    leading = weights.shape[:-2]
    shapes = ((*leading, count) for count in weights.shape[-2:])
    for code, shape in zip(codes, shapes, strict=True):
        cells = code
        while cells.ndim > len(shape) and cells.shape[0] == 1:
            cells = cells[0]
        if cells.ndim == len(shape) - 1:  # torch's own layer splits heads later
            cells = cells.unsqueeze(-2)
        try:
            spread.append(cells.expand(shape))
        except RuntimeError:
            return None
    alike = [
        axis
        for axis in range(len(leading))
        if all(bool((each == each.narrow(axis, 0, 1)).all()) for each in spread)
    ]
    if not alike:
        return None
    heads = alike[-1]
    queries, keys = (
        each.movedim(heads, -2)[..., 0, :].reshape(-1, each.shape[-1]) for each in spread
    )
    if not bool((keys >= 0).any()) or int(max(queries.max(), keys.max())) >= grid[0] * grid[1]:
        return None
    names = {name.rpartition(".")[2] for name, _ in model.network.named_parameters()}
    is_class = bool(names & _CLASS_TOKENS) and len(queries) == 1 and int(queries[0, 0]) == NOWHERE
    return AttentionPlaces(
        grid, queries.contiguous(), keys.contiguous(), heads - weights.ndim, 0 if is_class else None
    )
