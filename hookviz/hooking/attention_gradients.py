"""Find the attention of a pass with gradients, so that a target's gradient by the weights is known.

While somebody looks, torch's own functions are computed by products and a softmax in place of their
fused kernels, through which no gradient by the weights comes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional

from hookviz.errors import ModelError
from hookviz.hooking.attention_calls import AttentionCalls, attention_weights, multi_head_output
from hookviz.hooking.forward_pass import backward_pass
from hookviz.hooking.torch_functions import TensorMarks, function_name
from hookviz.language.saying import say
from hookviz.types import Model

_SOFTMAX = "Softmax"  # how autograd calls the step that made the weights


class AttentionGradients(AttentionCalls):
    """Attention of a pass, with where in autograd's graph the weights of layers looked at are."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._edges = TensorMarks[tuple[GradientEdge, tuple[int, ...]]]()

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`; torch's own attention by its definition, where somebody looks."""
        name = function_name(func).partition(".")[0]
        if not self._is_looked_at(tuple(self._running)):
            return super().called(func, args, kwargs)
        if name == "scaled_dot_product_attention":
            weights = attention_weights(*args, **kwargs)
            if weights is not None:
                self._attends(lambda: weights)
                return _mixed(weights, *args, **kwargs)
        if name == "multi_head_attention_forward":
            output, weights = multi_head_output(*args, **kwargs)
            self._attends(lambda: weights)
            if not kwargs.get("need_weights", True):
                return output, None
            is_mean = kwargs.get("average_attn_weights", True)
            return output, weights.mean(-3) if is_mean else weights
        return super().called(func, args, kwargs)

    def gradients(self, model: Model, value: Tensor, image: Tensor) -> list[Tensor | None]:
        """Return ∂value/∂weights for each of `found`, in the weights' shape; 0 without influence.

        None where nobody looks.

        Args:
            model: whose pass it was.
            value: the target, one number with a graph.
            image: what the network was given, with `requires_grad`.

        Raises:
            ModelError: a layer attends where gradients are off, or the network can't be
                differentiated.
        """
        edges = {}
        for number, call in enumerate(self.found):
            if call.weights is None:
                continue
            edge = self._edges.get(call.weights)
            if edge is None or not value.requires_grad:
                raise ModelError(
                    say(
                        "{layer!r} of {model} attends where no gradient comes through: its "
                        "weights are known without a target.",
                        layer=call.layer,
                        model=model.title,
                    )
                )
            edges[number] = edge
        raw = backward_pass(model, value, [image, *(edge for edge, _ in edges.values())])[1:]
        gradients: list[Tensor | None] = [None] * len(self.found)
        for (number, (_, order)), gradient in zip(edges.items(), raw, strict=True):
            weights = self.found[number].weights
            assert weights is not None
            if gradient is None:
                gradients[number] = torch.zeros_like(weights)
            else:
                turned = gradient.permute(*order) if order else gradient
                gradients[number] = turned.to("cpu", torch.float32).reshape(weights.shape)
        return gradients

    def _kept(self, weights: Tensor, order: Sequence[int] = ()) -> Tensor:
        kept = super()._kept(weights, order)
        if weights.requires_grad:
            self._edges[kept] = _edge(weights), tuple(order)
        return kept


def _edge(weights: Tensor) -> GradientEdge:
    """Return where the graph has the weights: those handed out may be a view of those that mix."""
    edge = get_gradient_edge(weights)
    node = edge.node
    while _SOFTMAX not in node.name() and len(node.next_functions) == 1:
        before = node.next_functions[0][0]
        if before is None:
            break
        node = before
    return GradientEdge(node, 0) if _SOFTMAX in node.name() else edge


def _mixed(weights: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return what the weights make of the values, as ``F.scaled_dot_product_attention`` does."""
    names = ("query", "key", "value", "attn_mask", "dropout_p")
    given = dict(zip(names, args, strict=False)) | kwargs
    value, dropout = given["value"], given.get("dropout_p", 0.0)
    if dropout:
        weights = functional.dropout(weights, dropout)
    if given.get("enable_gqa"):
        value = value.repeat_interleave(weights.shape[-3] // value.shape[-3], -3)
    mixed: Tensor = weights.to(value.dtype) @ value
    return mixed
