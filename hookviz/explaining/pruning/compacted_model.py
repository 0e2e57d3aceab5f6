"""Make a network smaller: remove channels of zeros, with the weights that read them.

Zeros in a weight are multiplied as any number is, so a masked network is as large and as slow as it
was. Where a channel puts out 0 and its consumers are known (see
`hookviz.explaining.pruning.groups`), it is removed from all of them, and the scores stay the same
up to rounding, since sums are added up in another order.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing import inputs
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError, shorten
from hookviz.explaining.pruning.groups import NORMS, PruningGroup, pruning_groups
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.hooks import tensors_in
from hookviz.hooking.network_state import is_shared, share
from hookviz.language.saying import say
from hookviz.models.derived_models import copied_network
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import Model, ModelInput, Progress, ignore
from hookviz.weights_digest import weights_digest

TOLERANCE = 1e-3
"""Share of the largest output by which both networks may differ; rounding gives about 1e-6."""

_MAX_ROUNDS = 7  # of timed passes, one of each network alternately
_TIMING_SECONDS = 3.0  # after which no more than the fewest rounds are run
_MIN_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class CompactedModel:
    """Smaller network without the channels that put out 0, compared with the original.

    Attributes:
        model: the smaller model, to be used like any other.
        removed: how many channels were removed from each layer, by its name.
        whole: why a layer still has channels of zeros, by its name.
        parameters: number of parameters, before and after.
        multiply_adds: of one pass, before and after.
        seconds: of one pass, before and after: the median of alternating passes.
        difference: the largest between their outputs for the input that they were timed with.
    """

    model: Model
    removed: Mapping[str, int]
    whole: Mapping[str, str]
    parameters: tuple[int, int]
    multiply_adds: tuple[int, int]
    seconds: tuple[float, float]
    difference: float
    _images: Tensor = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Write the network as a `torch.export` program for one image at a time; return the file.

        HookViz takes the file as a model's name, as in ``hookviz layers --model smaller.pt2``;
        other code reads it by ``torch.export.load``. It is for inputs of the size that it was made
        with.

        Raises:
            ModelError: the path ends in something else than ``.pt2``, or can't be written, or
                `torch.export` can't follow the network's code.
        """
        file = path_of(path)
        if file.suffix.casefold() != ".pt2":
            name = shorten(file.name)
            raise ModelError(
                say(
                    "{file!r} does not end in {suffix}, as programs do.",
                    file=name,
                    suffix=".pt2",
                )
            )
        images = self._images.to(*device_and_dtype(self.model.network))
        try:
            network = copied_network(self.model)
            with torch.inference_mode(mode=False), torch.no_grad():
                program = torch.export.export(network, (images,))
                torch.export.save(program, file)
        except Exception as error:  # of a file system, or of torch's on a person's code
            why = shorten(str(error).partition("\n")[0], 200) or type(error).__name__
            raise ModelError(
                say(
                    "{model} can't be written to {file}: {reason}",
                    model=self.model.title,
                    file=file.name,
                    reason=why,
                )
            ) from error
        return file


def remove_pruned_channels(
    model: Model | nn.Module, image: Any = None, *, progress: Progress = ignore
) -> CompactedModel:
    """Remove the channels that put out 0 for any image, where that is possible.

    Such channels are what `prune` leaves of whole channels; any other model with kernels, biases
    and batch norms of zeros works as well. They can be removed from an ordinary convolution whose
    output goes on through batch norms, activations and pooling to other such convolutions or linear
    layers alone: all of VGG and AlexNet, the squeezing layers of SqueezeNet, the inner layers of a
    residual block. At least one channel stays in every layer.

    Args:
        model: from `prune`, `load_model` or `wrap`, or a module of one's own.
        image: with which both are compared and timed: as `capture` takes it; noise by default.
        progress: called with the share done; what it raises ends the run.

    Raises:
        ModelError: no channel can be removed, and why; or the network's code can't be followed,
            or it can't take the image; or the outputs differ by more than 0.001 of the largest.

    >>> pruned = hookviz.prune(hookviz.load_model("shapesnet"), 0.5, "channels by L1 norm")
    >>> small = hookviz.remove_pruned_channels(pruned)
    >>> small.parameters
    (444436, 229044)
    >>> small.removed["stage1.first.conv"], small.whole["stage1.second.conv"]
    (24, 'add puts it together with something else')
    """
    model = as_model(model)
    if image is None:
        image = torch.randn(1, *own_shape(model), generator=torch.Generator().manual_seed(0))
    model_input = inputs.prepare_input(model, image)
    network = copied_network(model)
    with private_replica(model):  # where its code takes the image alone, and so a copy's does
        groups = pruning_groups(copied_network(model))
    plans: dict[str, tuple[PruningGroup, Tensor]] = {}  # and which channels are kept
    whole: dict[str, str] = {}
    for name, group in groups.items():
        zeros = _kernels_of_zeros(network.get_submodule(name))
        if not bool(zeros.any()):
            continue
        if isinstance(group, str):
            whole[name] = group
            continue
        kept = ~(zeros & _stays_zero(network, group))
        if bool(kept.all()):
            parts = [say("the bias of {name}", name=name), *group.between]
            whole[name] = say("{parts} makes a constant of its zeros", parts=" or ".join(parts))
        elif len(kept) > 1:
            kept[0] |= not kept.any()  # a layer without channels computes nothing
            plans[name] = group, kept
    if not plans:
        raise ModelError(_nothing_to_remove(model, whole))
    with torch.no_grad():
        for group, kept in plans.values():
            _remove_channels(network, group, kept)
    fixed_digest = weights_digest(share(network)) if is_shared(model.network) else ""
    smaller_model = replace(model, network=network, fixed_digest=fixed_digest, replaced={})
    removed = {name: int((~kept).sum()) for name, (_, kept) in plans.items()}
    return _compare((model, smaller_model), model_input, removed, whole, progress)


def _nothing_to_remove(model: Model, whole: Mapping[str, str]) -> str:
    if not whole:
        return say(
            "No conv layer of {model} has a kernel of zeros, so there is no channel to "
            "take out; hookviz.prune with whole channels makes some.",
            model=model.title,
        )
    reasons = "; ".join(f"{name}: {why}" for name, why in list(whole.items())[:3])
    more = say("; and {count:,} more", count=len(whole) - 3) if len(whole) > 3 else ""
    return say(
        "No channel of {model} can be taken out. {reasons}{rest}. Of the models in "
        "the box shapesnet has layers that can do with fewer.",
        model=model.title,
        reasons=reasons,
        rest=more,
    )


def _kernels_of_zeros(conv: nn.Module) -> Tensor:
    """Return which kernels are all 0, bool ``(C,)``."""
    weight = conv.get_parameter("weight") if "weight" in conv._parameters else None
    if weight is None:
        return torch.zeros(0, dtype=torch.bool)
    return (weight == 0).flatten(1).all(1)


def _stays_zero(network: nn.Module, group: PruningGroup) -> Tensor:
    """Return which channels with kernels of 0 reach the consumers as 0, bool ``(C,)``."""
    conv = network.get_submodule(group.conv)
    weight, bias = conv.get_parameter("weight"), conv._parameters.get("bias")
    stays = torch.ones(len(weight), dtype=torch.bool, device=weight.device)
    if bias is not None:
        stays &= bias == 0
    for name in group.between:
        layer = network.get_submodule(name)
        with torch.no_grad():
            output = layer(weight.new_zeros(1, len(weight), *(1,) * (weight.ndim - 2)))
        stays &= output.flatten() == 0
    return stays


def _remove_channels(network: nn.Module, group: PruningGroup, kept: Tensor) -> None:
    """Leave the channels `kept`, bool ``(C,)``, in every layer of the group."""
    conv: Any = network.get_submodule(group.conv)
    for name in (group.conv, *group.between):
        layer: Any = network.get_submodule(name)
        for key, tensor in [*layer._parameters.items(), *layer._buffers.items()]:
            if tensor is not None and tensor.ndim:
                _replace(layer, key, tensor[kept])
    count = int(kept.sum())
    conv.out_channels = count
    for name in group.between:
        layer = network.get_submodule(name)
        setattr(layer, "num_features" if isinstance(layer, NORMS) else "num_parameters", count)
    for name, flat in group.consumers.items():
        consumer: Any = network.get_submodule(name)
        columns = kept.repeat_interleave(consumer.in_features // len(kept)) if flat else kept
        _replace(consumer, "weight", consumer.weight[:, columns])
        setattr(consumer, "in_features" if flat else "in_channels", int(columns.sum()))


def _replace(module: nn.Module, name: str, values: Tensor) -> None:
    is_parameter = name in module._parameters
    values = values.clone()
    setattr(module, name, nn.Parameter(values, requires_grad=False) if is_parameter else values)


def _compare(
    models: tuple[Model, Model],
    model_input: ModelInput,
    removed: Mapping[str, int],
    whole: Mapping[str, str],
    progress: Progress,
) -> CompactedModel:
    """Compare and time the smaller network, the second, with the first."""
    reporter = ProgressReporter(progress, 2 * (1 + _MAX_ROUNDS))
    images = model_input.tensor
    device = device_and_dtype(models[0].network)[0]

    def run(model: Model) -> tuple[Any, float]:
        with private_replica(model) as replica:
            start = _now(device)
            output = forward_pass(model, replica, images, reporter)
            took = _now(device) - start
        reporter.step()
        return output, took

    difference = _difference(models[1], *(run(model)[0] for model in models))
    started = time.perf_counter()
    seconds: tuple[list[float], list[float]] = ([], [])
    for done in range(_MAX_ROUNDS):
        if done >= _MIN_ROUNDS and time.perf_counter() - started > _TIMING_SECONDS:
            break
        for model, times in zip(models, seconds, strict=True):
            times.append(run(model)[1])
    traces = [input_trace(model, model_input).layers for model in models]
    parameters = [sum(map(Tensor.numel, nn.Module.parameters(each.network))) for each in models]
    work = [sum(layer.multiply_adds * layer.calls for layer in layers) for layers in traces]
    return CompactedModel(
        model=models[1],
        removed=removed,
        whole=whole,
        parameters=(parameters[0], parameters[1]),
        multiply_adds=(work[0], work[1]),
        seconds=(median(seconds[0]), median(seconds[1])),
        difference=difference,
        _images=images,
    )


def _difference(model: Model, before: Any, after: Any) -> float:
    """Return the largest difference of two outputs; refuse one that is more than rounding."""
    pairs = [
        (one.double(), other.double())
        for (_, one), (_, other) in zip(tensors_in(before), tensors_in(after), strict=True)
        if one.is_floating_point()
    ]
    difference = max((float((one - other).abs().max()) for one, other in pairs), default=0.0)
    largest = max((float(one.abs().max()) for one, _ in pairs), default=0.0)
    if not difference <= TOLERANCE * largest:
        raise ModelError(
            say(
                "Without its channels of zeros {model} puts out something else, by "
                "{difference:.2g} of {largest:.2g}: its code uses them in a way that can't "
                "be followed.",
                model=model.title,
                difference=difference,
                largest=largest,
            )
        )
    return difference


def _now(device: torch.device) -> float:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter()
