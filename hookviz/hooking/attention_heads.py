"""Read and change what each attention head puts out, before the output projection mixes them.

A head puts out ``softmax(QKᵀ·scale + bias)·V`` of its own queries, keys and values. No module holds
that alone, so the torch functions of a pass are watched, as `AttentionCalls` tells attention:

1. ``F.scaled_dot_product_attention`` returns it.
2. Attention by hand has it as the product of the weights and the values.
3. ``F.multi_head_attention_forward`` projects it inside: it is called with the identity in place of
   its output projection, which follows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hookviz.errors import SettingError
from hookviz.hooking import hooks
from hookviz.hooking.attention_calls import AttentionCalls, multi_head_arguments
from hookviz.hooking.torch_functions import function_name
from hookviz.language.saying import say
from hookviz.types import ActivationKey
from hookviz.wording import times

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
            change: from the innermost layer that attends and what its heads put out, a tensor
                ``(N, heads, queries, numbers)``, to what takes its place; None leaves it.
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
        """Call `func`, and change what comes of attention."""
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
        """Return what takes the place of ``(N, heads, queries, numbers)``."""
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
        given = multi_head_arguments(*args, **kwargs)
        weight, bias = given["out_proj_weight"], given["out_proj_bias"]
        identity = torch.eye(weight.shape[1], dtype=weight.dtype, device=weight.device)
        mixed, weights = function(**given | {"out_proj_weight": identity, "out_proj_bias": None})
        heads = mixed.reshape(
            *mixed.shape[:-1], given["num_heads"], -1
        )  # (queries, N, heads, numbers)
        is_batched = heads.ndim == 4
        rows = heads.permute(1, 2, 0, 3) if is_batched else heads.transpose(0, 1)[None]
        changed = self._changed(rows)
        back = changed.permute(2, 0, 1, 3) if is_batched else changed[0].transpose(0, 1)
        return functional.linear(back.flatten(-2), weight, bias), weights


def head_axis(shape: tuple[int, ...], equation: str | None, declared: int | None) -> int | None:
    """Return which axis of what attention makes of its values counts the heads, if that is known.

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
