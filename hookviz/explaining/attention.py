"""Tell who attends to whom: the weights of every layer that attends, and their rollout."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule

from hookviz.capturing.inputs import prepare
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.recorded_pass import as_scores, wanted_layers
from hookviz.errors import HookVizError, ModelError, shorten
from hookviz.hooking.attention_calls import AttentionCall, AttentionCalls
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.language.saying import say
from hookviz.types import Address, MissingAddressError, Model, ModelInput
from hookviz.wording import times

_MOST_NAMED = 3  # layers in a message


@dataclass(frozen=True, eq=False)
class Attention(Mapping[str, Tensor]):
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
    """

    model: str
    model_input: ModelInput
    weights: Mapping[str, Tensor] = field(repr=False)
    logits: Tensor | None = field(repr=False)

    def __getitem__(self, address: str) -> Tensor:
        """Return the weights at a written address, or of the first time that a layer attends.

        Raises:
            UnknownLayerError: there are none; also a `KeyError`, so that ``in`` and ``get`` work as
                on any mapping.
        """
        found = self.weights.get(address, self.weights.get(str(Address(str(address)))))
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

        >>> from hookviz.explaining.attention import Attention
        >>> model_input = hookviz.prepare(hookviz.load_model("shapesnet"), torch.ones(3, 8, 8))
        >>> one_head = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])  # (heads, queries, keys)
        >>> Attention("two layers", model_input, {"0": one_head, "1": one_head}, None).rollout()
        tensor([[0.2500, 0.7500],
                [0.0000, 1.0000]])
        """
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
            step = (weights.double().mean(0) + torch.eye(tokens)) / 2
            flow = step / step.sum(1, keepdim=True) @ flow
        return flow.float()


@with_numbers
def attention(
    model: Model,
    image: Any,
    layers: str | Iterable[str] | None = None,
    *,
    size: int | None = None,
    whole: bool = False,
) -> Attention:
    """Record the attention weights of every layer that attends, for one image.

    They are ``softmax(QKᵀ·scale + bias)`` as the layer computes it (Vaswani et al., "Attention Is
    All You Need", 2017), with its masks, biases and windows, whether it is written by hand or calls
    torch's functions, whose fused kernels never hold them; those are computed once more from the
    same queries and keys. What is taken for attention, and what not, says
    `hookviz.hooking.attention_calls`. The pass runs on a private replica, so the network stays as
    it is and attends as fast as ever.

    Args:
        model: from `load_model` or `wrap`.
        image: anything that `prepare` takes.
        layers: a layer's name, several, or None for all that attend. A block such as ``"blocks.0"``
            stands for what attends in it, and ``""`` for the whole network. Weights of other layers
            are not computed.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.

    Returns:
        Weights by address, in order of execution, each named by the innermost module in whose call
        queries, keys and values meet.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, nothing in it attends, or a layer asked for
            does not.

    >>> from torchvision.models import VisionTransformer
    >>> sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "mlp_dim": 16}
    >>> network = VisionTransformer(image_size=32, patch_size=8, **sizes)
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=32, crop=32))
    >>> found = hookviz.attention(model, "assets/samples/cat.jpg")
    >>> found["encoder.layers.encoder_layer_1.self_attention"].shape  # (heads, queries, keys)
    torch.Size([4, 17, 17])
    """
    model_input = prepare(model, image, size=size, whole=whole)
    asked = _asked(model, model_input, layers)
    with private_replica(model) as replica:
        calls = AttentionCalls(replica, asked)
        with calls.watching():
            output = forward_pass(model, replica, model_input.tensor)
    _check_found(model, asked, calls.found)
    times_of = Counter[str]()
    weights = {}
    for call in calls.found:
        if call.weights is not None:
            weights[str(Address(call.layer, times_of[call.layer]))] = _by_head(call.weights)
        times_of[call.layer] += 1
    return Attention(model.title, model_input, weights, as_scores(output, len(model_input.tensor)))


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
        raise ModelError(
            say(
                "{model} computes no attention: no softmax of queries times keys weighs values in "
                "it.{script} A transformer does, such as torchvision's vit_b_16; where {model} "
                "looks is told by the lens grad-cam.",
                model=model.title,
                script=_script_in(model.network),
            )
        )
    reached = frozenset(layer for call in found for layer in call.within)
    missing = next((name for name in sorted(asked or ()) if name not in reached), None)
    if missing is None:
        return
    more = "" if len(attending) <= _MOST_NAMED else ", …"
    raise ModelError(
        say(
            "In layer {layer!r} of {model} nothing attends.{script} These do: {layers}.",
            layer=shorten(missing),
            model=model.title,
            script=_script_in(model.network.get_submodule(missing)),
            layers=", ".join(map(repr, attending[:_MOST_NAMED])) + more,
        )
    )


def _script_in(network: nn.Module) -> str:
    """Return the sentence that part of a network can't be watched, if that is so."""
    scripted = any(isinstance(module, ScriptModule) for module in network.modules())
    return say(" What runs inside of a TorchScript module is not seen.") if scripted else ""


def _by_head(weights: Tensor) -> Tensor:
    """Return weights without a batch of one: ``(heads, queries, keys)``, perhaps of windows."""
    if weights.ndim > 3 and len(weights) == 1:
        weights = weights[0]  # once: what comes then may be windows or heads, and stays
    return weights[None] if weights.ndim == 2 else weights
