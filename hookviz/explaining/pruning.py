"""Choose which weights of conv layers are pruned at a share of them, by each of six methods.

The masks are those of `torch.nn.utils.prune` on a CPU with the same share, and for random ones the
same seed: weights one by one over all layers at once, as ``global_unstructured`` has them with
``L1Unstructured`` or ``RandomUnstructured``; whole channels in every layer by the same share, as
``ln_structured`` and ``random_structured`` have them along dimension 0. ``round(share · n)`` of n
are pruned. The literature: magnitude, Han et al., "Learning both Weights and Connections for
Efficient Neural Networks" (2015); norms of kernels, Li et al., "Pruning Filters for Efficient
ConvNets" (2016).
"""

from collections.abc import Iterable, Mapping
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
    """Chooser of pruning masks for conv layers, at any share by one method.

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
            layers: names; layers without conv weights of their own are left out, and where whole
                channels are pruned transposed convolutions too: theirs lie along another dimension.
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
                    "{name} has no conv layer with weights of its own to prune. Most models of "
                    "the catalog have, for example shapesnet.",
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
        if self._method == "smallest weights":
            return self._without_smallest(share)
        generator = torch.Generator().manual_seed(self._seed)
        if self._method == "random weights":
            return self._without_random(share, generator)
        return {
            name: self._kept_channels(name, weight, share, generator)
            .view(-1, *(1,) * (weight.ndim - 1))
            .expand(weight.shape)
            for name, weight in self.weights.items()
        }

    def _has_weights(self, module: nn.Module | None) -> bool:
        if not isinstance(module, _ConvNd) or module._parameters.get("weight") is None:
            return False
        return not (self._method in OF_CHANNELS and isinstance(module, _ConvTransposeNd))

    @cached_property
    def _sizes(self) -> NDArray[np.float32]:
        """All magnitudes in ascending order."""
        flat = [weight.abs().flatten().cpu().float() for weight in self.weights.values()]
        sizes: NDArray[np.float32] = torch.cat(flat).numpy()
        sizes.sort()  # NumPy's takes a twentieth of the time of torch's
        return sizes

    def _without_smallest(self, share: float) -> dict[str, Tensor]:
        count = round(share * self.count)
        limit = float(self._sizes[count - 1]) if count else -1.0
        return {name: ~(weight.abs().float() <= limit) for name, weight in self.weights.items()}

    def _without_random(self, share: float, generator: torch.Generator) -> dict[str, Tensor]:
        dtypes = (weight.dtype.to_real() for weight in self.weights.values())
        dtype = reduce(torch.promote_types, dtypes)
        drawn = torch.rand(self.count, generator=generator, dtype=dtype)
        stays = torch.ones(self.count, dtype=torch.bool)
        if count := round(share * self.count):
            stays[drawn.topk(count, sorted=False).indices] = False
        sizes = [weight.numel() for weight in self.weights.values()]
        parts: tuple[Tensor, ...] = torch.split(stays, sizes)
        return {
            name: part.view(weight.shape).to(weight.device)
            for part, (name, weight) in zip(parts, self.weights.items(), strict=True)
        }

    def _kept_channels(
        self, name: str, weight: Tensor, share: float, generator: torch.Generator
    ) -> Tensor:
        """Choose the channels that stay, bool ``(C,)``."""
        channels = len(weight)
        stays = torch.ones(channels, dtype=torch.bool, device=weight.device)
        count = round(share * channels)
        if not count:  # and nothing is drawn either
            return stays
        if self._method == "random channels":
            drawn = torch.rand(channels, generator=generator)
            return (drawn > drawn.kthvalue(count).values).to(weight.device)
        if self._method == "channels by effect":
            size = self._effects[name].to(weight.device)
        else:
            order = 1 if self._method == "channels by L1 norm" else 2
            size = torch.linalg.vector_norm(weight, order, dim=list(range(1, weight.ndim)))
        stays[:] = False
        stays[size.topk(channels - count).indices] = True
        return stays
