"""Tell who attends to whom: the weights of every layer that attends, and their gradients."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.recorded_pass import without_batch
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.errors import ModelError, shorten
from hookviz.explaining.attending import no_attention_error, script_in
from hookviz.explaining.known_attention import Attention
from hookviz.explaining.named_class import class_number
from hookviz.explaining.scoring import scores_in
from hookviz.hooking.attention_calls import AttentionCall, AttentionCalls
from hookviz.hooking.attention_gradients import AttentionGradients
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.forward_pass import differentiable, forward_pass, private_replica
from hookviz.hooking.precision import device_and_dtype
from hookviz.language.saying import joined, say
from hookviz.models.wrapping import as_model
from hookviz.outputs.reading import read_scores
from hookviz.types import ActivationKey, Model, ModelInput

_MOST_NAMED = 3  # layers in a message


@with_numbers
def attention(
    model: Model | nn.Module,
    image: Any,
    layers: str | Iterable[str] | None = None,
    *,
    target: int | str | None = None,
    size: int | None = None,
    whole: bool = False,
) -> Attention:
    """Record the attention weights of every layer that attends, for one image.

    They are ``softmax(QKᵀ·scale + bias)`` as the layer computes it (Vaswani et al., "Attention Is
    All You Need", 2017), with its masks, biases and windows, whether it is written by hand or calls
    torch's functions, whose fused kernels never hold them; those are computed once more from the
    same queries and keys. What is taken for attention, and what not, says
    `hookviz.hooking.attention_calls`. The hooks are gone afterwards, and the network attends as
    fast as ever.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `prepare` takes.
        layers: a layer's name, several, or None for all that attend. A block such as ``"blocks.0"``
            stands for what attends in it, and ``""`` for the whole network. Weights of other layers
            are not computed.
        target: number or name of a class, for whose score (before the softmax) the gradients by
            the weights are kept too; None for none, and for no backward pass.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.

    Returns:
        Weights by address, in order of execution, each named by the innermost module in whose call
        queries, keys and values meet.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, nothing in it attends, or a layer asked for
            does not; with a target, it puts out no class scores or can't be differentiated.
        SettingError: it has no class of that number or name.

    >>> from torchvision.models import VisionTransformer
    >>> sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "mlp_dim": 16}
    >>> network = VisionTransformer(image_size=32, patch_size=8, **sizes)
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=32, crop=32))
    >>> found = hookviz.attention(model, "assets/samples/cat.jpg")
    >>> found["encoder.layers.encoder_layer_1.self_attention"].shape  # (heads, queries, keys)
    torch.Size([4, 17, 17])
    """
    model = as_model(model)
    model_input = prepare(model, image, size=size, whole=whole)
    asked = _asked(model, model_input, layers)
    if target is not None:
        return _with_gradients(model, model_input, asked, target)
    with private_replica(model) as replica:
        calls = AttentionCalls(replica, asked)
        with calls.watching():
            output = forward_pass(model, replica, model_input.tensor)
    _check_found(model, asked, calls.found)
    weights = _by_address(calls.found, [call.weights for call in calls.found])
    found = read_scores(model.output, output, len(model_input.tensor), len(model.categories))
    scores = None if found is None else without_batch(found.values.float().cpu())
    return Attention(model.title, model_input, weights, scores)


def _with_gradients(
    model: Model, model_input: ModelInput, asked: frozenset[str] | None, target: int | str
) -> Attention:
    """Record the weights in a pass that goes back too, from the target's score."""
    with differentiable(model) as network:
        calls = AttentionGradients(network, asked)
        image = model_input.tensor.to(*device_and_dtype(network), copy=True).requires_grad_()
        with calls.watching():
            output = forward_pass(model, network, image)
        _check_found(model, asked, calls.found)
        scores = scores_in(model, output, 1).values[0]
        number = class_number(target, model.categories, len(scores), model.title)
        gradients = calls.gradients(model, scores[number], image)
    return Attention(
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


def _asked(model: Model, model_input: ModelInput, layers: Any) -> frozenset[str] | None:
    """Return the names of the layers asked for; None for all."""
    if layers is None:
        return None
    is_several = isinstance(layers, Iterable) and not isinstance(layers, str)
    names = list(layers) if is_several else layers
    if names == "" or (is_several and "" in names):
        return None
    return frozenset(wanted_layers(model, input_trace(model, model_input), names))


def _check_found(
    model: Model, asked: frozenset[str] | None, found: Iterable[AttentionCall]
) -> None:
    """Refuse a network in which nothing attends, and a layer in which nothing does."""
    attending = list(dict.fromkeys(call.layer for call in found))
    if not attending:
        raise no_attention_error(model)
    reached = frozenset(layer for call in found for layer in call.within)
    missing = next((name for name in sorted(asked or ()) if name not in reached), None)
    if missing is None:
        return
    more = "" if len(attending) <= _MOST_NAMED else say(", …")
    raise ModelError(
        say(
            "In layer {layer!r} of {model} nothing attends.{script} These do: {layers}.",
            layer=shorten(missing),
            model=model.title,
            script=script_in(model.network.get_submodule(missing)),
            layers=joined(map(repr, attending[:_MOST_NAMED])) + more,
        )
    )


def _by_head(weights: Tensor) -> Tensor:
    """Return weights without a batch of one: ``(heads, queries, keys)``, perhaps of windows."""
    if weights.ndim > 3 and len(weights) == 1:
        weights = weights[0]  # once: what comes then may be windows or heads, and stays
    return weights[None] if weights.ndim == 2 else weights
