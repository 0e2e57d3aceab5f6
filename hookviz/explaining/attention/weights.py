"""Record who attends to whom: the layers that attend, their weights, and the weights' gradients.

`attending_layers` lists the layers without computing any weight. `attention` records the weights of
one pass as an `AttentionMaps`, which rolls them out through the layers. With a target, torch's own
functions are computed by products and a softmax in place of their fused kernels, through which no
gradient by the weights comes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.jit import ScriptModule
from torch.nn import functional

from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.recorded_pass import without_batch
from hookviz.capturing.wanted_layers import layers_by_selector
from hookviz.errors import HookVizError, ModelError, shorten
from hookviz.explaining.scores.scoring import class_number, scores_in
from hookviz.hooking.attention_calls import (
    AttentionCall,
    AttentionCalls,
    attention_weights,
    multi_head_output,
)
from hookviz.hooking.device import device_and_dtype, with_numbers
from hookviz.hooking.forward_pass import (
    backward_pass,
    differentiable,
    forward_pass,
    pass_without_data,
    private_replica,
)
from hookviz.hooking.network_state import Findings
from hookviz.hooking.selection import Layers
from hookviz.hooking.torch_functions import TensorMarks, function_name
from hookviz.language.saying import joined, say
from hookviz.models.derived_models import with_edits
from hookviz.outputs.reading import read_scores
from hookviz.types import ActivationKey, MissingAddressError, Model, ModelInput
from hookviz.wording import times

_SOFTMAX = "Softmax"  # how autograd calls the step that made the weights


class _AttentionGradients(AttentionCalls):
    """Attention of a pass, with where in autograd's graph the weights of layers looked at are."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._edges = TensorMarks[tuple[GradientEdge, tuple[int, ...]]]()

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`; torch's own attention by its definition, where somebody looks."""
        name = function_name(func).partition(".")[0]
        if not self._is_observed(tuple(self._running)):
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

        `value` is the target, one number with a graph, and `image` the input with `requires_grad`.

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

    def _copied(self, weights: Tensor, order: Sequence[int] = ()) -> Tensor:
        kept = super()._copied(weights, order)
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


_MOST_SHAPES = 8  # per network that are remembered

_attending = Findings[tuple[str, ...]](_MOST_SHAPES)


@with_numbers
def attending_layers(model: Model, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the layers that attend for an input of `shape`, ``(C, H, W)``, in order of execution.

    What counts as attention is in `hookviz.hooking.attention_calls`. The pass is made without data
    where that can be, and remembered per network.

    Raises:
        ModelError: the network can't take an input of that shape.

    >>> from hookviz.explaining.attention.weights import attending_layers
    >>> attending_layers(hookviz.load_model("shapesnet"), (3, 128, 128))
    ()
    """

    def follow(replica: nn.Module, images: object) -> tuple[str, ...]:
        calls = AttentionCalls(replica, frozenset())
        with calls.watching():
            replica(images)
        return tuple(dict.fromkeys(call.layer for call in calls.found))

    known = _attending.of(model.network)
    return known.find(shape, lambda: pass_without_data(model, shape, follow))


def no_attention_error(model: Model) -> ModelError:
    """Return the error that says that nothing in a network attends, and which networks do."""
    return ModelError(
        say(
            "{model} computes no attention: no softmax of queries times keys weighs values in "
            "it.{script} A transformer does, such as ShapesViT, which comes with HookViz.",
            model=model.title,
            script=_script_in(model.network),
        )
    )


def _script_in(network: nn.Module) -> str:
    """Return the sentence that part of a network can't be watched, if that is so."""
    scripted = any(isinstance(module, ScriptModule) for module in network.modules())
    return say(" What runs inside of a TorchScript module is not seen.") if scripted else ""


@dataclass(frozen=True, eq=False)
class AttentionMaps(Mapping[str, Tensor]):
    """Attention weights of one image in one model, by written address.

    ``attention["blocks.0.attn"]`` are those of the layer's first time; ``"blocks.0.attn#1"`` those
    of its second, in the same call or in another. Iterating gives written addresses in order of
    execution.

    Each is float32 on the CPU, ``(heads, queries, keys)``: the softmax before any dropout, so that
    each query's row has the sum 1 (or 0, where a mask keeps it from every key). A layer with
    windows has one axis more, as a rule ``(windows, heads, queries, keys)`` with the windows in the
    order in which the network cuts them out, and none where it cuts out one. Before the queries all
    stands as the network has it, but for a batch of one: some have the heads before the windows
    (Hiera, NesT), some fold others into them, and what attends among channels (XCiT) has these for
    queries and keys.

    Attributes:
        model: what the model is called.
        model_input: the input with its picture and crop.
        weights: the weights by written address.
        logits: the network's output, float32 on the CPU, ``(classes,)``; None if it is no vector.
        target: the class whose score the gradients are of; None where none was asked for.
        gradients: ∂score/∂weights by written address, of the weights' shapes; empty without a
            target.
    """

    model: str
    model_input: ModelInput
    weights: Mapping[str, Tensor] = field(repr=False)
    logits: Tensor | None = field(repr=False)
    target: int | None = None
    gradients: Mapping[str, Tensor] = field(default_factory=dict, repr=False)

    def __getitem__(self, address: str) -> Tensor:
        """Return the weights at a written address, or of the first time that a layer attends.

        Raises:
            UnknownLayerError: there are none; also a `KeyError`, so that ``in`` and ``get`` work as
                on any mapping.
        """
        found = self.weights.get(address, self.weights.get(str(ActivationKey(str(address)))))
        if found is None:
            raise MissingAddressError(say("layer that attends"), address, self.weights)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.weights)

    def __len__(self) -> int:
        return len(self.weights)

    def rollout(self) -> Tensor:
        """Multiply the weights through the layers: how much of each first token is in each last.

        Of every layer the mean over its heads, half of it and half of what the shortcut around the
        layer brings: ``½·W + ½·I``, each row divided by its sum, from the last layer to the first
        (Abnar and Zuidema, "Quantifying Attention Flow in Transformers", 2020, arXiv:2005.00928).
        It goes through the layers that are here: take all of them for the whole network.

        Returns:
            float32 ``(tokens after the last layer, tokens before the first)``, rows of sum 1.

        Raises:
            HookVizError: a layer has windows, or does not attend among one number of tokens.

        >>> from hookviz.explaining.attention.weights import AttentionMaps
        >>> model = hookviz.load_model("shapesnet")
        >>> model_input = hookviz.prepare_input(model, torch.ones(3, 8, 8))
        >>> one_head = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])  # (heads, queries, keys)
        >>> AttentionMaps("two layers", model_input, {"0": one_head, "1": one_head}, None).rollout()
        tensor([[0.2500, 0.7500],
                [0.0000, 1.0000]])
        """

        def mixed(address: str, flow: Tensor) -> Tensor:
            step = (self.weights[address].double().mean(0) + torch.eye(len(flow))) / 2
            return step / step.sum(1, keepdim=True) @ flow

        return self._rolled(mixed)

    def gradient_rollout(self) -> Tensor:
        """Add up, through the layers, the attention that speaks for the target.

        Of every layer the mean over its heads of what is above 0 of gradient times weight,
        ``Ā = mean((∇A ⊙ A)⁺)``, and from the first layer to the last ``R ← R + Ā·R``, which begins
        with the identity (Chefer, Gur and Wolf, "Generic Attention-model Explainability for
        Interpreting Bi-Modal and Encoder-Decoder Transformers", 2021, arXiv:2103.15679, equations
        5 and 6). The row of the class token is what the paper shows for an image.

        Returns:
            float32 ``(tokens after the last layer, tokens before the first)``; rows have no fixed
            sum.

        Raises:
            HookVizError: no target was asked for; or as `rollout`.

        >>> from hookviz.explaining.attention.weights import AttentionMaps
        >>> model = hookviz.load_model("shapesnet")
        >>> model_input = hookviz.prepare_input(model, torch.ones(3, 8, 8))
        >>> weights = {"0": torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])}  # (heads, queries, keys)
        >>> gradients = {"0": torch.tensor([[[-1.0, 4.0], [1.0, 0.0]]])}
        >>> AttentionMaps("one layer", model_input, weights, None, 0, gradients).gradient_rollout()
        tensor([[1., 2.],
                [0., 1.]])
        """
        if self.target is None:
            raise HookVizError(
                say(
                    "There are no gradients to roll out: attention(model, image, target=class) has "
                    "them, for the class's number or name."
                )
            )

        def mixed(address: str, flow: Tensor) -> Tensor:
            shares = self.gradients[address].double() * self.weights[address]
            return flow + shares.clamp(min=0).mean(0) @ flow

        return self._rolled(mixed)

    def _rolled(self, mixed: Callable[[str, Tensor], Tensor]) -> Tensor:
        """Follow the tokens from layer to layer, by what `mixed` makes of the flow at each."""
        if not self.weights:
            raise HookVizError(
                say("There are no weights to roll out: attention(model, image) has all layers'.")
            )
        tokens = next(iter(self.weights.values())).shape[-1]
        flow = torch.eye(tokens, dtype=torch.float64)
        for address, weights in self.weights.items():
            if weights.shape[-3:] != weights.shape or weights.shape[-2:] != flow.shape:
                raise HookVizError(
                    say(
                        "Rollout follows tokens from layer to layer, which all have to attend "
                        "among the same tokens: {layer!r} of {model} has weights of {shape}, where "
                        "heads×{tokens}×{tokens} are needed. Choose layers without windows that go "
                        "together: attention(model, image, layers).",
                        layer=address,
                        model=self.model,
                        shape=times(weights.shape),
                        tokens=tokens,
                    )
                )
            flow = mixed(address, flow)
        return flow.float()


_MOST_NAMED = 3  # layers in a message
_Groups = Sequence[Sequence[str]] | None


@with_numbers
def attention(
    model: Model | nn.Module,
    image: Any,
    layers: Layers = None,
    *,
    target: int | str | None = None,
    size: int | None = None,
    whole: bool = False,
    edits: Mapping[Any, Any] | None = None,
) -> AttentionMaps:
    """Record the attention weights of every layer that attends, for one image.

    They are ``softmax(QKᵀ·scale + bias)`` as the layer computes it (Vaswani et al., "Attention Is
    All You Need", 2017), with its masks, biases and windows, whether it is written by hand or calls
    torch's functions, whose fused kernels never hold them; those are computed once more from the
    same queries and keys. What counts as attention is said in
    `hookviz.hooking.attention_calls`. The hooks are gone afterwards, and the network attends as
    fast as ever.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `prepare_input` takes.
        layers: as `capture` takes them, or None for all that attend. A block such as ``"blocks.0"``
            stands for what attends in it, and ``""`` for the whole network. Of a pattern, those
            that attend are taken. Weights of other layers are not computed.
        target: number or name of a class, for whose score (before the softmax) the gradients by
            the weights are kept too; None for none, and for no backward pass.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        edits: what the passes change, as of `hookviz.edit`.

    Returns:
        Weights by address, in order of execution, each named by the innermost module in whose call
        queries, keys and values meet.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, nothing in it attends, or nothing in a layer
            asked for, or in those of a pattern, does; with a target, it puts out no class scores or
            can't be differentiated.
        SettingError: it has no class of that number or name.

    >>> from torchvision.models import VisionTransformer
    >>> sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "mlp_dim": 16}
    >>> network = VisionTransformer(image_size=32, patch_size=8, **sizes)
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=32, crop=32))
    >>> found = hookviz.attention(model, "assets/samples/cat.jpg")
    >>> found["encoder.layers.encoder_layer_1.self_attention"].shape  # (heads, queries, keys)
    torch.Size([4, 17, 17])
    """
    model = with_edits(model, edits)
    model_input = prepare_input(model, image, size=size, whole=whole)
    groups = _groups(model, model_input, layers)
    if target is not None:
        return _with_gradients(model, model_input, groups, target)
    with private_replica(model) as replica:
        calls = AttentionCalls(replica, _names(groups))
        with calls.watching():
            output = forward_pass(model, replica, model_input.tensor)
    _check_attending(model, groups, calls.found)
    weights = _by_address(calls.found, [call.weights for call in calls.found])
    found = read_scores(model.output, output, len(model_input.tensor), len(model.categories))
    scores = None if found is None else without_batch(found.values.float().cpu())
    return AttentionMaps(model.title, model_input, weights, scores)


def _with_gradients(
    model: Model, model_input: ModelInput, groups: _Groups, target: int | str
) -> AttentionMaps:
    """Record the weights in a pass that goes back too, from the target's score."""
    with differentiable(model) as network:
        calls = _AttentionGradients(network, _names(groups))
        image = model_input.tensor.to(*device_and_dtype(network), copy=True).requires_grad_()
        with calls.watching():
            output = forward_pass(model, network, image)
        _check_attending(model, groups, calls.found)
        scores = scores_in(model, output, 1).values[0]
        number = class_number(target, model.categories, len(scores), model.title)
        gradients = calls.gradients(model, scores[number], image)
    return AttentionMaps(
        model.title,
        model_input,
        _by_address(calls.found, [call.weights for call in calls.found]),
        scores.detach().float().cpu(),
        number,
        _by_address(calls.found, gradients),
    )


def _by_address(
    found: Iterable[AttentionCall], tensors: Iterable[Tensor | None]
) -> dict[str, Tensor]:
    """Return what there is of each time that a layer attends, by written address."""
    times_of = Counter[str]()
    kept = {}
    for call, tensor in zip(found, tensors, strict=True):
        if tensor is not None:
            kept[str(ActivationKey(call.layer, times_of[call.layer]))] = _by_head(tensor)
        times_of[call.layer] += 1
    return kept


def _groups(model: Model, model_input: ModelInput, layers: Any) -> _Groups:
    """Return the names of the layers that each selector chooses; None for all."""
    if layers is None:
        return None
    is_several = isinstance(layers, Iterable) and not isinstance(layers, str)
    names = list(layers) if is_several else layers
    if names == "" or (is_several and "" in names):
        return None
    return layers_by_selector(model, input_trace(model, model_input), names)


def _names(groups: _Groups) -> frozenset[str] | None:
    return None if groups is None else frozenset(name for group in groups for name in group)


def _check_attending(model: Model, groups: _Groups, found: Iterable[AttentionCall]) -> None:
    """Refuse a network in which nothing attends, and a selector none of whose layers does."""
    attending = list(dict.fromkeys(call.layer for call in found))
    if not attending:
        raise no_attention_error(model)
    reached = frozenset(layer for call in found for layer in call.within)
    silent = next((group for group in groups or () if reached.isdisjoint(group)), None)
    if silent is None:
        return
    more = "" if len(attending) <= _MOST_NAMED else say(", …")
    raise ModelError(
        say(
            "In layer {layer!r} of {model} nothing attends.{script} These do: {layers}.",
            layer=shorten(silent[0]),
            model=model.title,
            script=_script_in(model.network.get_submodule(silent[0])),
            layers=joined(map(repr, attending[:_MOST_NAMED])) + more,
        )
    )


def _by_head(weights: Tensor) -> Tensor:
    """Return weights without a batch of one: ``(heads, queries, keys)``, perhaps of windows."""
    if weights.ndim > 3 and len(weights) == 1:
        weights = weights[0]  # once: what comes then may be windows or heads, and stays
    return weights[None] if weights.ndim == 2 else weights
