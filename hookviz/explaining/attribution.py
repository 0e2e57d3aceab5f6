"""Compute an attribution target's gradient at a layer or at the input, or say why it has none."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from hookviz.capturing.last_maps import last_maps
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.unsupported_outputs import check_can_intervene
from hookviz.errors import HookVizError, ModelError, UnknownLayerError
from hookviz.explaining.attribution_target import (
    AttributionTarget,
    map_shape,
    maps_in,
    with_channels_first,
)
from hookviz.explaining.cam_formulas import Numbers
from hookviz.explaining.gradient_pass import INPUT, GradientPass
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore


@dataclass(frozen=True, eq=False, slots=True)
class Gradient:
    """Gradient of a target with respect to one output of a layer, or to the input.

    Attributes:
        output: those values, ``(C, H, W)``.
        gradient: ∂target/∂output, ``(C, H, W)``.
        value: the target.
        guided: at how many ReLUs negative gradients were cut.
    """

    output: Numbers = field(repr=False)
    gradient: Numbers = field(repr=False)
    value: float
    guided: int


def layer_gradient(
    model: Model,
    model_input: ModelInput,
    layer: str,
    target: AttributionTarget,
    progress: Progress = ignore,
) -> Gradient:
    """Differentiate a target with respect to what a layer puts out in a call, the first by default.

    Args:
        model: the model.
        model_input: the input.
        layer: the layer's name; ``name#1`` for its second call.
        target: what the gradient is of.
        progress: called with the share done after every conv layer, forward and backward.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        SettingError: the target's layer has no such channel or cell.
        ModelError: the layer puts out no maps, the network can't take this input, or it can't be
            differentiated.
        HookVizError: the target does not depend on the layer; a layer that it depends on is named.
    """
    is_image = model_input.tensor.ndim == 4
    (map_shape if is_image else _check_has_channels)(model, model_input, layer)
    run = GradientPass(model, model_input, target, (layer,), progress)
    gradient = run.run(model_input.tensor)[layer]
    if gradient is None:
        raise no_gradient_error(model, model_input, layer, target)
    take = maps_in if is_image else _channels_in
    output, gradient = (
        take(model, model_input, layer, each) for each in (run.layer_outputs[layer], gradient)
    )
    return _gradient(run, output, gradient)


def _check_has_channels(model: Model, model_input: ModelInput, layer: str) -> None:
    """Refuse a layer whose output has no channels, of sound, a volume or a clip."""
    trace = input_trace(model, model_input)
    address = trace.address(layer)
    if address.call >= trace.calls.get(address.layer, 0):
        names = [info.name for info in trace.every]
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, names)
    check_can_intervene(model, trace, address.layer)
    if address not in trace.map_outputs.get(address.layer, ()):
        convs = [info.name for info in trace.convs if info.name in trace.map_outputs]
        hint = say(" Layer {layer!r} does.", layer=convs[-1]) if convs else ""
        raise ModelError(
            say(
                "Layer {layer!r} of {model} puts out no maps of channels.{hint}",
                layer=layer,
                model=model.title,
                hint=hint,
            )
        )


def _channels_in(model: Model, model_input: ModelInput, layer: str, output: Tensor) -> Tensor:
    """Return an output or a gradient as ``(C, L)``, ``(C, D, H, W)`` and so on.

    Frames of a clip that a network folds into the batch are the depth, ``(C, T, H, W)``.
    """
    output = with_channels_first(model, model_input, layer, output)
    return output[0] if len(output) == 1 else output.movedim(0, 1)


def input_gradient(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    *,
    image: Tensor | None = None,
    guided: bool = False,
    progress: Progress = ignore,
) -> Gradient:
    """Differentiate a target with respect to the network's input.

    Args:
        model: the model.
        model_input: the input.
        target: what the gradient is of.
        image: ``(1, C, H, W)`` in place of the input's own tensor.
        guided: cut negative gradients at every ReLU (Springenberg et al., 2015): backwards through
            one, ∂/∂x = max(0, ∂/∂y) where x > 0, else 0. That goes for ReLU6 too, and for both as
            modules and as functions.
        progress: called with the share done after every conv layer, forward and backward.

    Raises:
        SettingError: the target's layer has no such channel.
        ModelError: the network can't take this input, or it can't be differentiated.
        HookVizError: no gradient gets from the target to the input.
    """
    run = GradientPass(model, model_input, target, (INPUT,), progress, guided=guided)
    gradient = run.run(model_input.tensor if image is None else image)[INPUT]
    if gradient is None:
        raise no_gradient_error(model, model_input, INPUT, target)
    return _gradient(run, run.layer_outputs[INPUT][0], gradient)


def _gradient(run: GradientPass, output: Tensor, gradient: Tensor) -> Gradient:
    unbatched = gradient if gradient.ndim == output.ndim else gradient.reshape(output.shape)
    return Gradient(_numbers(output), _numbers(unbatched), run.value, run.guided_relus)


def last_layer_with_gradient(
    model: Model, model_input: ModelInput, target: AttributionTarget, but: str = ""
) -> str | None:
    """Return the last conv layer, other than `but`, at which the target's gradient is not all zero.

    Or the block behind them that puts out the last tokens, or maps with their channels last. None
    where there is no such layer.
    """
    trace = input_trace(model, model_input)
    names = [layer.name for layer in trace.convs]
    last = last_maps(trace, {layer.name for layer in trace.every})
    if last is not None and trace.layouts[ActivationKey(last)].last:
        names.append(last)
    run = GradientPass(model, model_input, target, names, ignore)
    gradients = run.run(model_input.tensor)
    for name in reversed(names):
        gradient = gradients[name]
        if gradient is None or name == but:
            continue
        gradient = with_channels_first(model, model_input, name, gradient)
        if gradient.shape[0] != 1 or gradient.ndim != 4:
            continue
        if bool(gradient.any()):
            return name
    return None


def no_gradient_error(
    model: Model, model_input: ModelInput, layer: str, target: AttributionTarget
) -> HookVizError:
    """Return the error for a missing gradient: it says the cause and names a layer that works."""
    what, where = (
        target.describe(model),
        say("layer {layer!r}", layer=layer) if layer else say("the input"),
    )
    other = last_layer_with_gradient(model, model_input, target, but=layer)
    where_seen = "." if layer else say(", which the lens gradients shows.")
    hint = (
        ""
        if other is None
        else say(" Layer {layer!r} has a gradient{seen}", layer=other, seen=where_seen)
    )
    if layer and not _depends_on(model, model_input, layer, target):
        return HookVizError(
            say(
                "In {model}, {quantity} does not depend on {place}.{hint}",
                model=model.title,
                quantity=what,
                place=where,
                hint=hint,
            )
        )
    return HookVizError(
        say(
            "{model} cuts the gradient between {place} and {quantity}: it detaches a tensor, "
            "computes without gradients, or takes a step that has none.{hint}",
            model=model.title,
            place=where,
            quantity=what,
            hint=hint,
        )
    )


def _depends_on(
    model: Model, model_input: ModelInput, layer: str, target: AttributionTarget
) -> bool:
    """Return whether noise on the layer's output changes the target."""
    address = input_trace(model, model_input).address(layer)

    def value(amount: float) -> Tensor:
        def disturb(call: hooks.Call) -> Tensor | None:
            if call.index != address.call:
                return None
            output: Tensor = call.output
            noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(0))
            return output + amount * (output.abs().max() + 1) * noise.to(output)

        run = GradientPass(model, model_input, target, (), ignore)
        with private_replica(model) as replica, hooks.edit(replica, (address.layer,), disturb):
            return run.target_values(replica, model_input.tensor)

    return bool(value(0.0) != value(1.0))


def _numbers(tensor: Tensor) -> Numbers:
    """Copy values to the CPU, as float32 where the network computed in less."""
    values = tensor.detach().cpu()
    wide = values if values.dtype == torch.float64 else values.float()
    numbers: Numbers = wide.numpy()
    return numbers
