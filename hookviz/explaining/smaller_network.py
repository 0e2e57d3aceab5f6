"""A network that is really smaller: channels of zeros taken out, with the weights on them.

Zeros in a weight are multiplied as any number is, so a masked network is as large and as slow as it
was. Where a channel puts out 0 and it is known which layers take it in (see
`hookviz.explaining.pruning_groups`), all of them do without it, and the scores stay the same up to
rounding, since sums are added up in another order.

Over 300 lines: its sentences for people stand whole, with a line for each fact.
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
from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError, shorten
from hookviz.explaining.pruning_groups import NORMS, PruningGroup, pruning_groups
from hookviz.hooking import replicas
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, own_shape, private_replica
from hookviz.hooking.hooks import tensors_in
from hookviz.hooking.precision import device_and_dtype
from hookviz.language.saying import say
from hookviz.models.digest import network_digest
from hookviz.models.exported import SUFFIX
from hookviz.paths import path_of
from hookviz.types import Model, ModelInput, Progress, ignore

TOLERANCE = 1e-3
"""By which share of the largest output both networks may differ; rounding gives 1e-6 or so."""

_ROUNDS = 7  # of timed passes, one of each network in turn
_PATIENCE = 3.0  # seconds after which there are no more of them than three
_FEWEST_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Smaller:
    """A network without the channels that put out 0, beside the one with them.

    Attributes:
        model: the smaller one, to be looked at like any other.
        removed: how many channels were taken out of each layer, by its name.
        whole: why a layer has channels of zeros still, by its name.
        parameters: how many numbers are learned, before and after.
        multiply_adds: of one pass, before and after.
        seconds: of one pass, before and after: the median of passes in turn.
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
        """Write the network as a program of `torch.export`, for one image at a time; the file.

        HookViz takes it as a model's name, as in ``hookviz layers --model smaller.pt2``; anybody
        else by ``torch.export.load``. It is for inputs of the size that it was made with.

        Raises:
            ModelError: the path ends in something else than ``.pt2``, or can't be written, or
                `torch.export` can't follow the network's code.
        """
        file = path_of(path)
        if file.suffix.casefold() != SUFFIX:
            raise ModelError(
                say(
                    "{file!r} does not end in {suffix}, as programs do.",
                    file=shorten(file.name),
                    suffix=SUFFIX,
                )
            )
        images = self._images.to(*device_and_dtype(self.model.network))
        try:
            with torch.inference_mode(mode=False), torch.no_grad():
                network = replicas.full_copy(self.model.network)
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


def smaller(model: Model, image: Any = None, *, progress: Progress = ignore) -> Smaller:
    """The model without the channels that put out 0 for any image, where they can be taken out.

    Such channels are what `prune` leaves of whole channels; it takes any other model with kernels,
    biases and batch norms of zeros as well. They can be taken out of an ordinary convolution whose
    output goes on through batch norms, activations and pooling to other such convolutions or linear
    layers alone: all of VGG and AlexNet, the squeezing layers of SqueezeNet, the inner layers of a
    residual block. At least one channel stays in every layer.

    Args:
        model: from `prune`, `load_model` or `wrap`.
        image: what both networks are compared and timed with: anything that `capture` takes; noise
            of the model's own size by default.
        progress: told the share done; what it raises ends the run.

    Raises:
        ModelError: no channel can be taken out, and why; or the network's code can't be followed,
            or it can't take the image; or the smaller network computes something else by more than
            0.001 of the largest output, as none should.

    >>> pruned = hookviz.prune(hookviz.load_model("shapesnet"), 0.5, "channels by L1 norm")
    >>> small = hookviz.smaller(pruned)
    >>> small.parameters
    (444436, 229044)
    >>> small.removed["stage1.first.conv"], small.whole["stage1.second.conv"]
    (24, 'add puts it together with something else')
    """
    if image is None:
        generator = torch.Generator().manual_seed(0)
        image = torch.randn(1, *own_shape(model), generator=generator)
    model_input = inputs.prepare(model, image)
    network = replicas.full_copy(model.network)
    plans: dict[str, tuple[PruningGroup, Tensor]] = {}
    whole: dict[str, str] = {}
    for name, way in pruning_groups(network).items():
        zeros = _kernels_of_zeros(network.get_submodule(name))
        if not bool(zeros.any()):
            continue
        if isinstance(way, str):
            whole[name] = way
            continue
        left = ~(zeros & _stays_zero(network, way))
        if bool(left.all()):
            parts = [say("the bias of {name}", name=name), *way.between]
            whole[name] = say("{parts} makes a constant of its zeros", parts=" or ".join(parts))
        elif len(left) > 1:
            left[0] |= not left.any()  # a layer without channels computes nothing
            plans[name] = way, left
    if not plans:
        raise ModelError(_nothing(model, whole))
    with torch.no_grad():
        for way, left in plans.values():
            _take_out(network, way, left)
    made = replace(model, network=network, digest=network_digest(network))
    removed = {name: int((~left).sum()) for name, (_, left) in plans.items()}
    return _compared((model, made), model_input, removed, whole, progress)


def _nothing(model: Model, whole: Mapping[str, str]) -> str:
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
    """Which kernels are 0 altogether, bool ``(C,)``."""
    weight = conv.get_parameter("weight") if "weight" in conv._parameters else None
    if weight is None:
        return torch.zeros(0, dtype=torch.bool)
    return (weight == 0).flatten(1).all(1)


def _stays_zero(network: nn.Module, way: PruningGroup) -> Tensor:
    """Which channels whose kernels are 0 are 0 at the end of the way too, bool ``(C,)``."""
    conv = network.get_submodule(way.conv)
    weight, bias = conv.get_parameter("weight"), conv._parameters.get("bias")
    stays = torch.ones(len(weight), dtype=torch.bool, device=weight.device)
    if bias is not None:
        stays &= bias == 0
    for name in way.between:
        part = network.get_submodule(name)
        with torch.no_grad():
            made = part(weight.new_zeros(1, len(weight), *(1,) * (weight.ndim - 2)))
        stays &= made.flatten() == 0
    return stays


def _take_out(network: nn.Module, way: PruningGroup, left: Tensor) -> None:
    """Leave the channels `left`, bool ``(C,)``, in every layer of the way."""
    conv: Any = network.get_submodule(way.conv)
    for name in (way.conv, *way.between):
        part: Any = network.get_submodule(name)
        for key, tensor in [*part._parameters.items(), *part._buffers.items()]:
            if tensor is not None and tensor.ndim:
                _replace(part, key, tensor[left])
    count = int(left.sum())
    conv.out_channels = count
    for name in way.between:
        part = network.get_submodule(name)
        setattr(part, "num_features" if isinstance(part, NORMS) else "num_parameters", count)
    for name, flat in way.consumers.items():
        taker: Any = network.get_submodule(name)
        columns = left.repeat_interleave(taker.in_features // len(left)) if flat else left
        _replace(taker, "weight", taker.weight[:, columns])
        setattr(taker, "in_features" if flat else "in_channels", int(columns.sum()))


def _replace(module: nn.Module, name: str, values: Tensor) -> None:
    is_parameter = name in module._parameters
    values = values.clone()
    setattr(module, name, nn.Parameter(values, requires_grad=False) if is_parameter else values)


def _compared(
    models: tuple[Model, Model],
    model_input: ModelInput,
    removed: Mapping[str, int],
    whole: Mapping[str, str],
    progress: Progress,
) -> Smaller:
    """What the smaller network, the second, is beside the first."""
    reporter = ProgressReporter(progress, 2 * (1 + _ROUNDS))
    images = model_input.tensor
    device = device_and_dtype(models[0].network)[0]

    def run(model: Model) -> tuple[Any, float]:
        with private_replica(model) as replica:
            begun = _now(device)
            output = forward_pass(model, replica, images, reporter)
            took = _now(device) - begun
        reporter.step()
        return output, took

    difference = _difference(models[1], *(run(model)[0] for model in models))
    started = time.perf_counter()
    seconds: tuple[list[float], list[float]] = ([], [])
    for done in range(_ROUNDS):
        if done >= _FEWEST_ROUNDS and time.perf_counter() - started > _PATIENCE:
            break
        for model, times in zip(models, seconds, strict=True):
            times.append(run(model)[1])
    traces = [input_trace(each, model_input).layers for each in models]
    parameters = [sum(part.numel() for part in each.network.parameters()) for each in models]
    work = [sum(layer.multiply_adds * layer.calls for layer in layers) for layers in traces]
    return Smaller(
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
    """The largest between two outputs; a network that computes something else is not handed out."""
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
