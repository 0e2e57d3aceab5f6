"""Find the attention of a pass, and read or change its heads, by the torch functions it calls.

Attention is ``softmax(QKᵀ·scale + bias)·V`` (Vaswani et al., "Attention Is All You Need", 2017),
and comes in three forms:

- ``F.scaled_dot_product_attention``, whose kernels never hold the weights;
- ``F.multi_head_attention_forward``, to which `nn.MultiheadAttention` comes down. While a function
  mode is on, PyTorch leaves the fast paths of it and of `nn.TransformerEncoder` by itself, in this
  thread alone;
- written by hand: a softmax whose input was made from the product of two tensors, ``q @ k.mT``, by
  whatever scales, masks, adds to or reshapes it (or mixes its heads, by a linear layer that leaves
  as many numbers), along one of the two axes that the product has from one factor alone. What
  comes of the softmax must go into another product, with the values.

No attention is therefore the softmax of a classifier, of a gate or of a pooling, whose input a
layer with weights makes; also written out as ``x @ weight``, since a network's own parameter is
neither queries nor keys in a product by hand. Not found are linear kinds without a softmax, a
softmax written as exponentials and a division, and what runs in a script or another thread.

A head puts out ``softmax(QKᵀ·scale + bias)·V`` of its own queries, keys and values. No module holds
that alone:

1. ``F.scaled_dot_product_attention`` returns it.
2. Attention by hand has it as the product of the weights and the values.
3. ``F.multi_head_attention_forward`` projects it inside: it is called with the identity in place of
   its output projection, which follows.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hookviz.errors import SettingError
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import (
    NORMS,
    EveryFunction,
    TensorMarks,
    function_name,
    kind_of,
    plain,
)
from hookviz.language.saying import say
from hookviz.types import ActivationKey
from hookviz.wording import times


def attention_weights(
    query: Tensor,
    key: Tensor,
    _value: Any = None,
    attn_mask: Tensor | None = None,
    _dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    **_rest: Any,
) -> Tensor | None:
    """Compute the weights of ``F.scaled_dot_product_attention``, whose arguments these are.

    In float32 at least, without dropout; the formula is that of its documentation. A query that a
    mask keeps from every key attends to none: its row is 0, as PyTorch has it.

    Returns:
        ``(…, heads, queries, keys)``; None where nested tensors make no rows.
    """
    rows, columns = plain(query), plain(key)
    if rows is None or columns is None:
        return None
    kind = torch.promote_types(rows.dtype, torch.float32)
    if enable_gqa:
        columns = columns.repeat_interleave(rows.shape[-3] // columns.shape[-3], -3)
    scores = rows.to(kind) @ columns.to(kind).mT
    scores *= rows.shape[-1] ** -0.5 if scale is None else scale
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    nothing = (scores == -torch.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(nothing, 0)


def multi_head_weights(*args: Any, **kwargs: Any) -> Tensor:
    """Compute the weights of ``F.multi_head_attention_forward``, whose arguments these are."""
    return multi_head_output(*args, **kwargs)[1]


def multi_head_arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments of ``F.multi_head_attention_forward`` by name, defaults filled in."""
    call = inspect.signature(functional.multi_head_attention_forward).bind(*args, **kwargs)
    call.apply_defaults()
    return call.arguments


def multi_head_output(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Call ``F.multi_head_attention_forward`` for its output and every head's weights.

    Without dropout, and by no fused kernel: where gradients are on they go through the weights.
    """
    function: Any = functional.multi_head_attention_forward
    arguments = multi_head_arguments(*args, **kwargs)
    padding = arguments["key_padding_mask"]
    if arguments["is_causal"] and not arguments["need_weights"] and padding is None:
        # A hint that PyTorch goes by, and by no mask, where it returns no weights.
        shape = len(arguments["query"]), len(arguments["key"])
        arguments["attn_mask"] = arguments["query"].new_ones(shape, dtype=torch.bool).triu(1)
    arguments |= {"is_causal": False, "training": False}
    arguments |= {"need_weights": True, "average_attn_weights": False}
    output, weights = function(**arguments)
    return output, weights


_PRODUCTS = frozenset(
    ("matmul", "rmatmul", "mm", "bmm", "baddbmm", "addmm", "addbmm", "einsum", "tensordot", "inner")
)
_SOFTMAX = frozenset(("softmax", "safe_softmax", "special_softmax"))
_REDUCING = frozenset(
    (
        *("sum", "mean", "amax", "amin", "max", "min", "prod", "median", "logsumexp"),
        *("norm", "vector_norm", "linalg_vector_norm", "std", "var", "var_mean", "std_mean"),
    )
)
_MIXING = frozenset(("linear", "conv1d", "conv2d", "conv3d"))
"""They make something else of what they are given, unless they leave as many numbers."""
_MOVING = frozenset(
    (
        *("permute", "transpose", "movedim", "moveaxis", "swapaxes", "swapdims", "t", "get"),
        *("reshape", "view", "flatten", "unflatten"),
    )
)
_SCORE_NORMS = NORMS | {"layer_norm", "rms_norm"}

Running = tuple[tuple[str, int], ...]
"""Calls of modules that are running, outermost first: the layer and which of its calls."""


@dataclass(frozen=True, eq=False, slots=True)
class AttentionCall:
    """One time that a layer attends.

    Attributes:
        within: modules in whose calls all of it runs, outermost first; ``""``, the network itself,
            is the first.
        weights: float32 on the CPU, of memory of their own, ``(…, queries, keys)``, rows of sum 1;
            None where nobody looks at the layer.
    """

    within: tuple[str, ...]
    weights: Tensor | None

    @property
    def layer(self) -> str:
        """The innermost module in whose call all of it runs."""
        return self.within[-1]


@dataclass(frozen=True, eq=False, slots=True)
class _Scores:
    """Mark of what was made from a product: where that ran, and which axes are queries and keys.

    `order` are the axes of the product with those of the queries and keys last; None where they
    are that already.
    """

    running: Running
    order: tuple[int, ...] | None


@dataclass(eq=False, slots=True)
class _Weights:
    """Mark of what was made from a softmax: where both ran, the weights, whether they were used."""

    running: Running
    weights: Tensor | None
    used: bool = False


class AttentionCalls(EveryFunction):
    """Attention that passes of a lent network compute; weights of the layers looked at alone.

    Attributes:
        found: every time that a layer attends, in order.
    """

    def __init__(self, replica: nn.Module, layers: frozenset[str] | None) -> None:
        """Observe `layers` and their parts; with None the whole network."""
        super().__init__()
        self.found: list[AttentionCall] = []
        self._replica = replica
        self._layers = layers
        self._running: list[tuple[str, int]] = []
        self._marks = TensorMarks[_Scores | _Weights]()
        tensors = (*nn.Module.parameters(replica), *nn.Module.buffers(replica))
        self._learned = frozenset(map(memory_of, tensors))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the passes that this thread runs in the block."""
        names = [name for name, _ in self._replica.named_modules()]
        with (
            hooks.before(self._replica, names, self._enter),
            hooks.observe(self._replica, names, self._leave, always_call=True),
            self,
        ):
            yield

    def _enter(self, call: hooks.Call) -> None:
        self._running.append((call.layer, call.index))

    def _leave(self, call: hooks.Call) -> None:
        if self._running and self._running[-1][0] == call.layer:
            self._running.pop()

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, and see whether it attends or is a step of attention by hand."""
        output = func(*args, **kwargs)
        name = function_name(func).partition(".")[0]  # of torch.ops with the overload: "mm.default"
        if name == "scaled_dot_product_attention":
            self._attends(lambda: attention_weights(*args, **kwargs))
        elif name == "multi_head_attention_forward":
            self._attends(lambda: multi_head_weights(*args, **kwargs))
        elif name in _PRODUCTS:
            self._multiplied(name, args, kwargs, output)
        elif name in _SOFTMAX and isinstance(output, Tensor):
            self._normalised(args, kwargs, output)
        else:
            self._went_on(name, args, kwargs, output)
        return output

    def _attends(self, weights: Callable[[], Tensor | None]) -> None:
        running = tuple(self._running)
        observed = weights() if self._is_observed(running) else None
        self._add(running, None if observed is None else self._copied(observed))

    def _multiplied(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        """Mark a product as scores; it is none of weights and values, which ends an attention."""
        operands = _tensors(args, kwargs)
        mixed = [mark for mark in map(self._marks.get, operands) if isinstance(mark, _Weights)]
        for mark in mixed:
            self._use(mark)
        factors = operands[-2:]  # of baddbmm and its like an addend stands before them
        if mixed or len(factors) < 2 or any(map(self._is_learned, factors)):
            return
        if isinstance(output, Tensor) and output.is_floating_point():
            order = _order(args[0]) if name == "einsum" and isinstance(args[0], str) else None
            self._marks[output] = _Scores(tuple(self._running), order)

    def _normalised(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Tensor) -> None:
        """Mark the output as weights, if the softmax is one of scores and along their keys."""
        scores = self._marks.get(_tensors(args, kwargs)[0])
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if not isinstance(scores, _Scores) or not isinstance(dim, int) or output.ndim < 2:
            return
        order = list(scores.order or ())
        if len(order) != output.ndim:
            order = list(range(output.ndim))
        if dim % output.ndim == order[-2]:  # (keys, queries), which softmax tells apart
            order[-2:] = order[:-3:-1]
        if dim % output.ndim != order[-1]:
            return
        running = tuple(self._running)
        weights = self._copied(output, order) if self._is_observed(running) else None
        self._marks[output] = _Weights(_in_both(scores.running, running), weights)

    def _went_on(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        """Pass a mark on to the result of a function of a marked tensor, but for reductions."""
        marked = None
        for operand in _tensors(args, kwargs):
            marked = self._marks.get(operand)
            if marked is not None:
                break
        else:
            return
        if name in _REDUCING or "pool" in name:
            return
        if isinstance(marked, _Scores):
            if name in _SCORE_NORMS:
                return
            if marked.order is not None and name in _MOVING:
                marked = _Scores(marked.running, None)
        for _, tensor in hooks.tensors_in(output):
            if name in _MIXING and tensor.numel() != operand.numel():
                continue
            if tensor.is_floating_point():
                self._marks[tensor] = marked

    def _use(self, mark: _Weights) -> None:
        if not mark.used:
            mark.used = True
            self._add(_in_both(mark.running, tuple(self._running)), mark.weights)

    def _add(self, running: Running, weights: Tensor | None) -> None:
        within = tuple(layer for layer, _ in running)
        self.found.append(AttentionCall(within, weights if self._is_observed(running) else None))

    def _copied(self, weights: Tensor, order: Sequence[int] = ()) -> Tensor:
        """Return a copy of the weights on the CPU, with their axes in `order`, if any."""
        turned = weights.permute(*order) if order else weights
        values = plain(turned.detach())
        if values is None:
            values = turned.detach()
        return values.to("cpu", torch.float32, copy=True).contiguous()

    def _is_learned(self, tensor: Tensor) -> bool:
        return not kind_of(tensor) and memory_of(tensor) in self._learned

    def _is_observed(self, running: Running) -> bool:
        return self._layers is None or any(layer in self._layers for layer, _ in running)


def memory_of(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; 0 where it has none of the usual kind."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else 0


def _order(equation: str) -> tuple[int, ...] | None:
    """Return the axes of an einsum's result with those of queries and keys last, if they are not.

    >>> _order("bqhd,bkhd->bqhk")
    (0, 2, 1, 3)
    """
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    factors = inputs.split(",")
    if not arrow or len(factors) != 2 or "." in equation:
        return None
    own = [[axis for axis in one if axis not in other] for one, other in (factors, factors[::-1])]
    ends = [[result.index(axis) for axis in axes if axis in result] for axes in own]
    if [len(axes) for axes in ends] != [1, 1]:
        return None
    queries, keys = ends[0][0], ends[1][0]
    if keys < queries:  # softmax tells which is which; the later axis counts as the keys until then
        queries, keys = keys, queries
    rest = (axis for axis in range(len(result)) if axis not in (queries, keys))
    return (*rest, queries, keys)


def _in_both(one: Running, other: Running) -> Running:
    """Return the calls in which both run."""
    shared = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        shared += 1
    return one[:shared]


def _tensors(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
    return [tensor for _, tensor in hooks.tensors_in((args, kwargs))]


_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead")
"""Attributes by which attention modules say how many heads they have."""

HeadChange = Callable[[ActivationKey, Tensor], Tensor | None]
"""From a call of a layer and its heads' outputs, ``(N, heads, …)``, to what takes their place."""


class HeadOutputs(AttentionCalls):
    """Passes of a network with the outputs of its attention heads read or changed."""

    def __init__(
        self, network: nn.Module, groups: Iterable[Sequence[str]], change: HeadChange
    ) -> None:
        """Call `change` each time that a layer in `groups` attends; ``""`` is the network.

        Args:
            network: whose passes are changed.
            groups: names of layers that attend, or of blocks around them. In a group, at least one
                layer has to attend.
            change: from the innermost layer that attends and its heads' output, a tensor
                ``(N, heads, queries, numbers)``, to another such tensor; None for no change.
        """
        super().__init__(network, frozenset())  # the weights are not computed
        self._groups = [tuple(each) for each in groups]
        self._wanted = frozenset(name for each in self._groups for name in each)
        self._change = change
        self._times = Counter[str]()
        self._found_before: list[int] = []

    def _enter(self, call: hooks.Call) -> None:
        self._found_before.append(len(self.found))
        super()._enter(call)

    def _leave(self, call: hooks.Call) -> None:
        super()._leave(call)
        before = self._found_before.pop() if self._found_before else 0
        if call.output is None:  # it failed
            return
        attended = {name for each in self.found[before:] for name in each.within}
        for group in self._groups:
            # One layer is checked after its call, several after the whole pass.
            is_over = call.layer == (group[0] if len(group) == 1 else "")
            if is_over and attended.isdisjoint(group):
                raise SettingError(
                    say(
                        "Nothing attends in {layer!r}, so it has no heads. hookviz.attention("
                        "model, image).weights has the layers that attend.",
                        layer=group[0],
                    )
                )

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, and change the heads where it computes attention."""
        name = function_name(func).partition(".")[0]
        if name == "multi_head_attention_forward" and self._is_wanted(self._names()):
            self._attends(lambda: None)
            return self._projected_later(args, kwargs)
        before = len(self.found)
        output = super().called(func, args, kwargs)
        if len(self.found) == before or not self._is_wanted(self.found[-1].within):
            return output
        equation = args[0] if name == "einsum" else None
        return self._changed_heads(output, equation)

    def _names(self) -> tuple[str, ...]:
        return tuple(layer for layer, _ in self._running)

    def _is_wanted(self, within: tuple[str, ...]) -> bool:
        return not self._wanted.isdisjoint(within)

    def _changed(self, heads: Tensor) -> Tensor:
        """Return the changed ``(N, heads, queries, numbers)``."""
        layer = self.found[-1].layer
        at = ActivationKey(layer, self._times[layer])
        self._times[layer] += 1
        changed = self._change(at, heads)
        return heads if changed is None else changed

    def _changed_heads(self, output: Tensor, equation: str | None) -> Tensor:
        declared = self._declared()
        if declared and equation is None and output.ndim == 3 and len(output) % declared == 0:
            folded = output.reshape(-1, declared, *output.shape[1:])
            return self._changed(folded).flatten(0, 1)
        axis = head_axis(output.shape, equation, declared)
        if axis is None:
            raise SettingError(
                say(
                    "Which axis of {shape} counts the heads of {layer!r} is not known. An edit "
                    "of all that the layer puts out works without heads=.",
                    shape=times(output.shape),
                    layer=self.found[-1].layer,
                )
            )
        return self._changed(output.movedim(axis, 1)).movedim(1, axis)

    def _declared(self) -> int | None:
        """Return the number of heads as the innermost module says it that does."""
        for layer in reversed(self.found[-1].within):
            module = self._replica.get_submodule(layer)
            for name in _HEADS:
                count = getattr(module, name, None)
                if isinstance(count, int) and count > 0:
                    return count
        return None

    def _projected_later(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Tensor, Tensor | None]:
        """Call ``F.multi_head_attention_forward``, and change its heads before it projects them."""
        function: Any = functional.multi_head_attention_forward
        arguments = multi_head_arguments(*args, **kwargs)
        weight, bias = arguments["out_proj_weight"], arguments["out_proj_bias"]
        identity = torch.eye(weight.shape[1], dtype=weight.dtype, device=weight.device)
        projection = {"out_proj_weight": identity, "out_proj_bias": None}
        mixed, weights = function(**arguments | projection)
        heads = mixed.reshape(
            *mixed.shape[:-1], arguments["num_heads"], -1
        )  # (queries, N, heads, numbers)
        is_batched = heads.ndim == 4
        rows = heads.permute(1, 2, 0, 3) if is_batched else heads.transpose(0, 1)[None]
        changed = self._changed(rows)
        back = changed.permute(2, 0, 1, 3) if is_batched else changed[0].transpose(0, 1)
        return functional.linear(back.flatten(-2), weight, bias), weights


def head_axis(shape: tuple[int, ...], equation: str | None, declared: int | None) -> int | None:
    """Return the axis that counts heads in the output of attention; None where unknown.

    Args:
        shape: ``(N, heads, queries, numbers)``, or of other axes.
        equation: of an einsum of weights and values; None of a product of matrices.
        declared: how many heads the module says that it has; None where it says nothing.

    >>> head_axis((2, 8, 49, 16), None, None), head_axis((2, 49, 8, 16), "bhqk,bkhd->bqhd", None)
    (1, 2)
    """
    if equation is not None:
        operands, _, result = equation.replace(" ", "").partition("->")
        one, _, other = operands.partition(",")
        shared = [axis for axis in one if axis in other and axis in result]
        return result.index(shared[-1]) if len(shared) > 1 else None
    leading = shape[:-2]
    if len(leading) == 2 and declared in (None, leading[1]):
        return 1
    fitting = [axis for axis, side in enumerate(leading) if side == declared]
    return fitting[0] if len(fitting) == 1 else None
