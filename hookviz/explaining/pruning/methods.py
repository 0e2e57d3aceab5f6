"""Choose which weights of conv and linear layers are pruned at a share of them, by six methods.

The masks are those of `torch.nn.utils.prune` on a CPU with the same share, and for random ones the
same seed: weights one by one over all layers at once, as ``global_unstructured`` has them with
``L1Unstructured`` or ``RandomUnstructured``; whole channels in every layer by the same share, as
``ln_structured`` and ``random_structured`` have them along dimension 0. ``round(share · n)`` of n
are pruned. The literature: magnitude, Han et al., "Learning both Weights and Connections for
Efficient Neural Networks" (2015); norms of kernels, Li et al., "Pruning Filters for Efficient
ConvNets" (2016).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from hookviz.errors import ModelError, SettingError, one_of
from hookviz.language.saying import mark, say

METHODS = (
    *(mark("smallest weights"), mark("random weights")),
    *(
        mark("channels by L1 norm"),
        mark("channels by L2 norm"),
        mark("random channels"),
        mark("channels by effect"),
    ),
)
"""How the pruned weights are chosen."""

OF_CHANNELS = METHODS[2:]
"""The methods that prune whole channels."""

RANDOM = (mark("random weights"), mark("random channels"))
"""The methods that choose at random."""


class Pruning:
    """Chooser of pruning masks for conv and linear layers, at any share by one method.

    Attributes:
        weights: the prunable weights by layer, a tensor that several layers share once.
        count: how many numbers they hold.
    """

    def __init__(
        self,
        network: nn.Module,
        layers: Iterable[str],
        method: str = METHODS[0],
        *,
        seed: int = 0,
        effects: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Prepare to prune among `layers` of `network`, in this order.

        Args:
            network: is only looked at.
            layers: names; layers without weights of their own, and those that are neither
                convolutions nor linear, are left out, and where whole channels are pruned
                transposed convolutions too: theirs lie along another dimension. Channels of a
                linear layer are the rows of its matrix.
            method: one of `METHODS`.
            seed: of the random methods; as after ``torch.manual_seed``.
            effects: for ``"channels by effect"`` a number per channel and layer, ``(C,)``; the
                channels with the smallest are pruned.

        Raises:
            SettingError: there is no such method, or `effects` is missing.
            ModelError: no layer is left.
        """
        one_of(say("method of pruning"), method, METHODS)
        if (method == "channels by effect") != (effects is not None):
            raise SettingError(
                say("effects go with 'channels by effect', and not with {method!r}.", method=method)
            )
        self._method, self._seed, self._effects = method, seed, effects or {}
        modules = dict(network.named_modules())
        chosen = [name for name in layers if self._has_weights(modules.get(name))]
        first = {id(modules[name].weight): name for name in reversed(chosen)}
        self.weights: dict[str, Tensor] = {
            name: modules[name].weight.detach()
            for name in chosen
            if first[id(modules[name].weight)] == name
        }
        if not self.weights:
            raise ModelError(
                say(
                    "{name} has no conv layer with weights of its own to prune, and no linear "
                    "layer over maps. Most models of the catalog have, for example shapesnet.",
                    name=type(network).__name__,
                )
            )
        self.count = sum(weight.numel() for weight in self.weights.values())

    def masks(self, share: float) -> dict[str, Tensor]:
        """Return a mask for each layer, True where a weight stays: bool, of the weight's shape.

        Of weights with the same magnitude all go together, so it can be more than asked for;
        `torch.nn.utils.prune` takes any of them.

        Raises:
            SettingError: `share` is not from 0 to 1.
        """
        if not 0 <= share <= 1:
            raise SettingError(
                say("share={share!r} is no share from 0 to 1, such as 0.3.", share=share)
            )
        weights = [*self.weights.values()]
        generator = torch.Generator().manual_seed(self._seed)
        if self._method == "smallest weights":
            masks = without_smallest(weights, self._sizes, share)
        elif self._method == "random weights":
            dtype = reduce(torch.promote_types, (weight.dtype.to_real() for weight in weights))
            masks = without_random(weights, share, generator, dtype)
        elif self._method == "random channels":
            masks = without_random_channels(weights, share, generator)
        else:
            masks = without_smallest_channels(weights, self._channel_sizes(), share)
        named = zip(self.weights.items(), masks, strict=True)
        return {name: mask.to(weight.device) for (name, weight), mask in named}

    def _has_weights(self, module: nn.Module | None) -> bool:
        if not isinstance(module, _ConvNd | nn.Linear) or module._parameters.get("weight") is None:
            return False
        return not (self._method in OF_CHANNELS and isinstance(module, _ConvTransposeNd))

    @cached_property
    def _sizes(self) -> NDArray[np.float32]:
        """All magnitudes in ascending order."""
        flat = [weight.abs().flatten().cpu().float() for weight in self.weights.values()]
        sizes: NDArray[np.float32] = torch.cat(flat).numpy()
        sizes.sort()  # NumPy's takes a twentieth of the time of torch's
        return sizes

    def _channel_sizes(self) -> list[Tensor]:
        """Return by what channels are ranked, ``(C,)`` for each layer."""
        if self._method == "channels by effect":
            return [self._effects[name].to(each.device) for name, each in self.weights.items()]
        order = 1 if self._method == "channels by L1 norm" else 2
        return [
            torch.linalg.vector_norm(weight.flatten(1), order, 1)
            for weight in self.weights.values()
        ]


def without_smallest(
    weights: Sequence[Tensor], sizes: NDArray[np.float32], share: float
) -> list[Tensor]:
    """Return which weights stay, bool, when the smallest of all layers together go.

    Args:
        weights: of each layer.
        sizes: all their magnitudes in ascending order.
        share: of all weights, 0…1.
    """
    count = round(share * len(sizes))
    limit = float(sizes[count - 1]) if count else -1.0
    return [~(weight.abs().float() <= limit) for weight in weights]


def without_random(
    weights: Sequence[Tensor],
    share: float,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
) -> list[Tensor]:
    """Return which weights stay, bool, when a share of all layers together is drawn to go."""
    counts = [weight.numel() for weight in weights]
    drawn = torch.rand(sum(counts), generator=generator, dtype=dtype)
    stays = torch.ones(sum(counts), dtype=torch.bool)
    if count := round(share * sum(counts)):
        stays[drawn.topk(count, sorted=False).indices] = False
    parts = zip(torch.split(stays, counts), weights, strict=True)
    return [part.view(weight.shape) for part, weight in parts]


def without_smallest_channels(
    weights: Sequence[Tensor], sizes: Sequence[Tensor], share: float
) -> list[Tensor]:
    """Return which weights stay, bool, when the smallest channels go from each layer.

    Args:
        weights: of each layer.
        sizes: of each layer's channels, ``(C,)``.
        share: of the channels of each layer, 0…1.
    """
    masks = []
    for weight, size in zip(weights, sizes, strict=True):
        stays = torch.zeros_like(size, dtype=torch.bool)
        stays[size.topk(len(size) - round(share * len(size))).indices] = True
        masks.append(stays.view(-1, *[1] * (weight.ndim - 1)).expand(weight.shape))
    return masks


def without_random_channels(
    weights: Sequence[Tensor], share: float, generator: torch.Generator
) -> list[Tensor]:
    """Return which weights stay, bool, when a share of each layer's channels is drawn to go."""
    masks = []
    for weight in weights:
        count, stays = round(share * len(weight)), torch.ones(len(weight), dtype=torch.bool)
        if count:  # else nothing is drawn either
            drawn = torch.rand(len(weight), generator=generator)
            stays = drawn > drawn.kthvalue(count).values
        masks.append(stays.view(-1, *[1] * (weight.ndim - 1)).expand(weight.shape))
    return masks
