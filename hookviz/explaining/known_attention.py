"""Hold who attends to whom in a pass, by layer, and roll it out through the layers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.types import ActivationKey, MissingAddressError, ModelInput
from hookviz.wording import times


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

        >>> from hookviz.explaining.known_attention import Attention
        >>> model_input = hookviz.prepare(hookviz.load_model("shapesnet"), torch.ones(3, 8, 8))
        >>> one_head = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])  # (heads, queries, keys)
        >>> Attention("two layers", model_input, {"0": one_head, "1": one_head}, None).rollout()
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

        >>> from hookviz.explaining.known_attention import Attention
        >>> model_input = hookviz.prepare(hookviz.load_model("shapesnet"), torch.ones(3, 8, 8))
        >>> weights = {"0": torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])}  # (heads, queries, keys)
        >>> gradients = {"0": torch.tensor([[[-1.0, 4.0], [1.0, 0.0]]])}
        >>> Attention("one layer", model_input, weights, None, 0, gradients).gradient_rollout()
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
