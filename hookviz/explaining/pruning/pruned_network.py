"""Prune a network: choose weights by one of six methods, and set them to 0.

The masks are those of `torch.nn.utils.prune` on a CPU with the same share, and for random ones the
same seed: weights one by one over all layers at once, as ``global_unstructured`` has them with
``L1Unstructured`` or ``RandomUnstructured``; whole channels in every layer by the same share, as
``ln_structured`` and ``random_structured`` have them along dimension 0. ``round(share · n)`` of n
are pruned. The literature: magnitude, Han et al., "Learning both Weights and Connections for
Efficient Neural Networks" (2015); norms of kernels, Li et al., "Pruning Filters for Efficient
ConvNets" (2016).

`torch.nn.utils.prune` sets a channel's kernel to 0 and leaves its bias, and the batch norm behind
it makes a constant of that. Here a pruned channel puts out 0: its bias becomes 0 too, and so do the
scale and shift of a batch norm that takes in the convolution's output, and no other layer's. Such a
channel can be taken out (see `hookviz.explaining.pruning.compacted_model`), but for those of linear
layers over tokens or maps: these stay, with zeros. `PruningPasses` runs a network at growing
shares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from hookviz.capturing import inputs
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import input_trace, layer_trace
from hookviz.errors import ModelError, SettingError, one_of
from hookviz.explaining.patching.part_changes import channel_effects
from hookviz.explaining.pruning.groups import BY_CHANNEL
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.device import with_numbers
from hookviz.hooking.forward_pass import ProgressReporter, pass_without_data, private_replica
from hookviz.hooking.own_network import replaced_tensors
from hookviz.hooking.selection import Layers, select
from hookviz.hooking.torch_functions import plain
from hookviz.language.saying import mark, say
from hookviz.models.derived_models import with_tensors
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import Reading
from hookviz.types import Activation, Model, ModelInput, Progress, ignore

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

        Layers without weights of their own, and those that are neither convolutions nor linear, are
        left out, and where whole channels are pruned transposed convolutions too: theirs lie along
        another dimension. Channels of a linear layer are the rows of its matrix. `seed` is as after
        ``torch.manual_seed``. `effects` has for ``"channels by effect"`` a number per channel and
        layer, ``(C,)``; the channels with the smallest are pruned.

        Raises:
            SettingError: `method` is not in `METHODS`, or `effects` is missing.
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

    `sizes` are all magnitudes in ascending order, `share` is of all weights, 0…1.
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

    `sizes` has a number for each channel of a layer, ``(C,)``; `share` is of the channels of each
    layer, 0…1.
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


Masks = Mapping[str, Tensor]
"""True where a weight stays, by layer, as `Pruning.masks` returns it."""

Norms = Mapping[str, Sequence[str]]
"""Names of the batch norms behind each conv layer, as `following_norms` returns them."""


@with_numbers
def prune(
    model: Model | nn.Module,
    share: float,
    method: str = METHODS[0],
    *,
    layers: Layers = None,
    seed: int = 0,
    image: Any = None,
    keep_biases: bool = False,
    progress: Progress = ignore,
) -> Model:
    """Prune a share of a model's conv or linear weights: set them to 0, in a model of its own.

    The same weights are pruned as by `torch.nn.utils.prune`: ``global_unstructured`` for weights
    one by one, ``ln_structured`` and ``random_structured`` along dimension 0 for whole channels.
    The original model stays as it is; tensors that are not pruned are shared. Of a network of one's
    own ``replaced`` has the changed tensors, which stand for its own in each pass. `save_weights`
    keeps the result, and `remove_pruned_channels` takes the pruned channels out of it.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        share: of all weights, or of the channels of every layer, 0…1.
        method: ``"smallest weights"``, ``"random weights"``, ``"channels by L1 norm"``,
            ``"channels by L2 norm"``, ``"random channels"``, or ``"channels by effect"``: those
            first whose absence changes the scores of `image` least.
        layers: conv layers, and linear layers that put out maps, as over tokens, by name, pattern,
            type or predicate; every conv layer that runs by default. They are pruned, and drawn
            for, in order of execution. Channels of a linear layer are rows of its matrix.
        seed: of the random methods, as after ``torch.manual_seed(seed)`` on a CPU.
        image: for ``"channels by effect"``: anything that `capture` takes.
        keep_biases: leave the bias and batch norm of a pruned channel as they are, as
            `torch.nn.utils.prune` does. Otherwise the channel puts out 0 and nothing else.
        progress: called with the share done where effects are measured; an exception ends the run.

    Raises:
        SettingError: the share or the method means nothing, or the image is missing.
        UnknownLayerError: the network lacks that layer.
        ModelError: no layer is left to prune, or too many channels to measure one by one.

    >>> model = hookviz.load_model("shapesnet")
    >>> pruned = hookviz.prune(model, 0.5, "channels by L1 norm")
    >>> kernels = pruned.network.stage1.first.conv.weight  # (C_out, C_in, kernel, kernel)
    >>> int((kernels == 0).flatten(1).all(1).sum()), len(kernels)
    (24, 48)
    """
    model = as_model(model)
    trace = layer_trace(model, own_shape(model))
    names = [info.name for info in trace.convs]
    if layers is not None:
        chosen = set(select(model.network, layers))
        names = [info.name for info in trace.convs_and_linears if info.name in chosen]
    model_input = None
    if method == "channels by effect":
        if image is None:
            raise SettingError(
                say("'channels by effect' needs an image whose scores are looked at.")
            )
        model_input = inputs.prepare_input(model, image)
    plan = plan_pruning(
        model,
        names,
        method,
        seed=seed,
        shape=None if keep_biases else own_shape(model),
        model_input=model_input,
        progress=progress,
    )
    return plan.pruned(model, share)


@dataclass(frozen=True, eq=False, slots=True)
class PruningPlan:
    """Method and layers of a pruning, from which the pruned network can be made again.

    Attributes:
        layers: names of the layers.
        method: one of `hookviz.explaining.pruning.pruned_network.METHODS`.
        seed: of the random methods.
        effects: of each layer's channels, for ``"channels by effect"``.
        norms: as `_masked_tensors` takes them.
    """

    layers: Sequence[str]
    method: str
    seed: int
    effects: Mapping[str, Tensor] | None
    norms: Norms | None

    def pruning(self, model: Model) -> Pruning:
        """Return which weights are pruned at any share."""
        with private_replica(model) as network:
            return Pruning(network, self.layers, self.method, seed=self.seed, effects=self.effects)

    def pruned(self, model: Model, share: float) -> Model:
        """Return the model with a share of its weights pruned."""
        tensors = _masked_tensors(model, self.pruning(model).masks(share), self.norms)
        weights = say(
            "{weights}, {share:.4g} % pruned: {method}",
            weights=model.weights,
            share=100 * share,
            method=self.method,
        )
        return replace(with_tensors(model, tensors), weights=weights)


def plan_pruning(
    model: Model,
    layers: Sequence[str],
    method: str,
    *,
    seed: int,
    shape: Sequence[int] | None,
    model_input: ModelInput | None,
    progress: Progress,
) -> PruningPlan:
    """Measure the channels' effects and find the batch norms behind them, where needed.

    `layers` are conv layers, or linear layers that put out maps. `shape` is that of an input,
    ``(C, H, W)``; None keeps the biases of pruned channels. `model_input` is for ``"channels by
    effect"``.

    Raises:
        ModelError: no layer has weights of its own, or too many channels to measure.
    """
    effects = norms = None
    if method == "channels by effect":
        assert model_input is not None
        with private_replica(model) as network:
            layers = [*Pruning(network, layers, OF_CHANNELS[0]).weights]
        effects = channel_effects(model, model_input, layers, progress)
    if method in OF_CHANNELS and shape is not None:
        norms = following_norms(model, shape)
    return PruningPlan(layers, method, seed, effects, norms)


def _masked_tensors(model: Model, masks: Masks, norms: Norms | None = None) -> dict[str, Tensor]:
    """Return the parameters and buffers that masks change, with zeros, by name.

    A mask is True where a weight stays. With `norms`, a channel whose whole kernel is pruned puts
    out 0: its bias becomes 0 too, and the output of these batch norms for it.
    """
    with private_replica(model) as network:
        modules = dict(network.named_modules())
        kept = {id(modules[name].weight): mask for name, mask in masks.items()}
        for name, mask in masks.items() if norms is not None else ():
            channels = mask.flatten(1).any(1)
            for module in (modules[name], *(modules[norm] for norm in (norms or {}).get(name, ()))):
                kept |= {id(tensor): channels for tensor in _offset_tensors(module)}
        own = (*nn.Module.named_parameters(network), *nn.Module.named_buffers(network))
        return {
            name: tensor.detach().masked_fill(~kept[id(tensor)], 0)
            for name, tensor in own
            if id(tensor) in kept
        }


def following_norms(model: Model, shape: Sequence[int]) -> dict[str, list[str]]:
    """Find the batch norms that take in a conv layer's output and nothing else, by layer.

    Directly, or behind modules that take 0 to 0 in every channel, such as a ReLU.

    `shape` is that of an input, ``(C, H, W)``.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    trace = {info.name for info in layer_trace(model, tuple(shape)).convs}
    return pass_without_data(
        model, shape, lambda network, images: _find_norms(network, images, trace)
    )


def _find_norms(network: nn.Module, images: Tensor, convs: set[str]) -> dict[str, list[str]]:
    modules = dict(network.named_modules())
    norms = [name for name, module in modules.items() if isinstance(module, _BatchNorm)]
    others = [name for name, module in modules.items() if type(module) in BY_CHANNEL]
    # By the id of an output: its conv layer, the output itself, to keep its id, and its version.
    outputs: dict[int, tuple[str, Tensor, int]] = {}
    sources: dict[str, list[str]] = {name: [] for name in (*norms, *others)}

    def note_source(call: hooks.Call) -> None:
        layer, _, version = outputs.get(id(call.inputs[0]), ("", None, -1))
        sources[call.layer].append(layer if call.inputs[0]._version == version else "")

    def note_output(call: hooks.Call) -> None:
        layer = call.layer if call.layer in convs else sources[call.layer][-1]
        if isinstance(call.output, Tensor):
            outputs[id(call.output)] = layer, call.output, call.output._version

    with (
        hooks.observe(network, [*convs, *sources], note_output),
        hooks.before(network, sources, note_source),
    ):
        network(images)
    norms_by_layer: dict[str, list[str]] = {}
    for norm in norms:
        layers = set(sources[norm])
        if len(layers) == 1 and "" not in layers:
            norms_by_layer.setdefault(layers.pop(), []).append(norm)
    return norms_by_layer


def _offset_tensors(module: nn.Module) -> list[Tensor]:
    """Return what offsets a channel of zeros: the bias; of a batch norm all that it adds."""
    tensors: list[Tensor | None] = [module._parameters.get("bias")]
    if isinstance(module, _BatchNorm):
        tensors = [module.weight, module.bias] if module.affine else [module.running_mean]
    return [tensor for tensor in tensors if tensor is not None]


Values = dict[str, NDArray[Any]]


class PruningPasses:
    """Forward passes of a model with a share of its weights set to 0."""

    def __init__(
        self,
        model: Model,
        model_input: ModelInput,
        plan: PruningPlan,
        count: int,
        progress: Progress,
    ) -> None:
        self.pruning = plan.pruning(model)
        self._model, self._model_input, self._plan = model, model_input, plan
        self._calls = {info.name: info.calls for info in input_trace(model, model_input).layers}
        self._reporter = ProgressReporter(progress, count * sum(self._calls.values()))

    def over_shares(self, shares: NDArray[np.float64], first: int, reading: Reading) -> Values:
        """Return scores, predictions and class `first`'s probability, if any, one per share."""
        logits, removed = [], []
        for share in shares:
            tensors, gone = self._pruned(float(share))
            removed.append(gone)
            logits.append(self._scores(tensors))
        scores = torch.cat(logits)
        values = {
            "shares": shares,
            "removed": np.array(removed),
            "logits": scores.numpy(),
            "top": scores.argmax(1).numpy(),
            "logit": scores[:, first].numpy(),
        }
        if not reading.is_share:
            return values
        chances = reading.values(scores)
        return values | {
            "top_probability": chances.max(1).values.numpy(),
            "probability": chances[:, first].numpy(),
        }

    def kept(self, share: float, found: Activation) -> Values:
        """Return the scores at one share, and the maps before, as `found` of a layer, and after."""
        raw: list[Tensor] = []

        def see(call: hooks.Call) -> None:
            if (
                call.layer == found.layer and not call.index
            ):  # a copy: an in-place layer can come next
                output = plain(call.output)
                assert output is not None  # of a convolution or a linear layer
                raw.append(output.to("cpu", torch.float32, copy=True))

        tensors, gone = self._pruned(share)
        kept: Values = {
            "kept_share": np.array(share),
            "kept_removed": np.array(gone),
            "kept_logits": self._scores(tensors, see)[0].numpy(),
        }
        if found.values.ndim == 3 and raw and raw[0].numel() == found.raw.numel():
            after = found.layout.maps(raw[0].reshape(found.raw.shape))
            kept |= {"before": found.values.numpy(), "after": after.numpy()}
        return kept

    def _pruned(self, share: float) -> tuple[dict[str, Tensor], float]:
        """Return the tensors pruned by a share, and the share of the weights that is 0 then."""
        masks = self.pruning.masks(share)
        stays = sum(int(mask.sum()) for mask in masks.values())
        tensors = _masked_tensors(self._model, masks, self._plan.norms)
        return tensors, (self.pruning.count - stays) / self.pruning.count

    def _scores(
        self,
        tensors: Mapping[str, Tensor],
        see: Callable[[hooks.Call], object] = lambda _call: None,
    ) -> Tensor:
        """Return the class scores, ``(1, classes)``, and call `see` for every layer call."""

        def report(call: hooks.Call) -> None:
            see(call)
            self._reporter.step()

        with (
            private_replica(self._model) as network,
            replaced_tensors(network, tensors),
            hooks.observe(network, self._calls, report),
        ):
            found = class_scores(self._model, network, self._model_input.tensor, self._reporter)
            return found.values.to("cpu", torch.float32)
