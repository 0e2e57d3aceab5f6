"""What a quantity depends on: its gradient at a layer or at the input, or why there is none."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import HookVizError
from hookviz.explaining.backward import INPUT, Pass, Quantity, check_maps, map_of
from hookviz.explaining.cam import Numbers
from hookviz.hooking import hooks, replicas
from hookviz.language.saying import say
from hookviz.types import Model, ModelInput, Progress, ignore


@dataclass(frozen=True, eq=False, slots=True)
class Gradient:
    """How a quantity changes with each value of a layer's first output, or of the input.

    Attributes:
        output: those values, ``(C, H, W)``.
        gradient: ∂quantity/∂output, ``(C, H, W)``.
        value: the quantity.
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
    quantity: Quantity,
    progress: Progress = ignore,
) -> Gradient:
    """The gradient of a quantity with respect to what a layer puts out in its first call.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        SettingError: the quantity's layer has no such channel or cell.
        ModelError: the layer puts out no maps, the network can't take this input, or it can't be
            differentiated.
        HookVizError: the quantity does not depend on the layer; it names one that it depends on.
    """
    check_maps(model, model_input, layer)
    run = Pass(model, model_input, quantity, (layer,), progress)
    gradient = run.run(model_input.tensor)[layer]
    if gradient is None:
        raise unreached(model, model_input, layer, quantity)
    return _gradient(run, map_of(model, model_input, layer, run.held[layer]), gradient)


def input_gradient(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    *,
    image: Tensor | None = None,
    guided: bool = False,
    progress: Progress = ignore,
) -> Gradient:
    """The gradient of a quantity with respect to the network's input.

    Args:
        model: the model.
        model_input: the input.
        quantity: what the gradient is of.
        image: ``(1, C, H, W)`` in place of the input's own tensor.
        guided: cut negative gradients at every ReLU (Springenberg et al., 2015): backwards through
            one, ∂/∂x = max(0, ∂/∂y) where x > 0, else 0. That goes for ReLU6 too, and for both as
            modules and as functions.
        progress: told the share done after every conv layer, there and back.

    Raises:
        SettingError: the quantity's layer has no such channel.
        ModelError: the network can't take this input, or it can't be differentiated.
        HookVizError: no gradient gets from the quantity to the input.
    """
    run = Pass(model, model_input, quantity, (INPUT,), progress, guided=guided)
    gradient = run.run(model_input.tensor if image is None else image)[INPUT]
    if gradient is None:
        raise unreached(model, model_input, INPUT, quantity)
    return _gradient(run, run.held[INPUT][0], gradient)


def _gradient(run: Pass, output: Tensor, gradient: Tensor) -> Gradient:
    own = gradient.reshape(output.shape)  # without a batch
    return Gradient(_numbers(output), _numbers(own), run.value, run.relus)


def working_layer(
    model: Model, model_input: ModelInput, quantity: Quantity, but: str = ""
) -> str | None:
    """The last conv layer, other than `but`, that the quantity has a gradient with respect to.

    None where there is none, or all of them are zero everywhere.
    """
    names = [layer.name for layer in input_trace(model, model_input).convs]
    run = Pass(model, model_input, quantity, names, ignore)
    gradients = run.run(model_input.tensor)
    for name in reversed(names):
        gradient = gradients[name]
        if gradient is None or name == but or gradient.shape[0] != 1 or gradient.ndim != 4:
            continue
        if bool(gradient.any()):
            return name
    return None


def unreached(
    model: Model, model_input: ModelInput, layer: str, quantity: Quantity
) -> HookVizError:
    """The error for a gradient that isn't there, with its cause and a layer that works."""
    what, where = (
        quantity.says(model),
        say("layer {layer!r}", layer=layer) if layer else say("the input"),
    )
    other = working_layer(model, model_input, quantity, but=layer)
    where_seen = "." if layer else say(", which the lens gradients shows.")
    hint = (
        ""
        if other is None
        else say(" Layer {layer!r} has a gradient{seen}", layer=other, seen=where_seen)
    )
    if layer and not _moves(model, model_input, layer, quantity):
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


def _moves(model: Model, model_input: ModelInput, layer: str, quantity: Quantity) -> bool:
    """Whether the quantity becomes another one with noise on the layer's output."""

    def value(amount: float) -> Tensor:
        def disturb(call: hooks.Call) -> Tensor:
            output: Tensor = call.output
            noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(0))
            return output + amount * (output.abs().max() + 1) * noise.to(output)

        run = Pass(model, model_input, quantity, (), ignore)
        replica = replicas.for_gradients(model.network)
        with torch.no_grad(), hooks.edit(replica, (layer,), disturb):
            return run.values_of(replica, model_input.tensor)

    return bool(value(0.0) != value(1.0))


def _numbers(tensor: Tensor) -> Numbers:
    """Values on the CPU, float32 where the network computed in less."""
    values = tensor.detach().cpu()
    wide = values if values.dtype == torch.float64 else values.float()
    numbers: Numbers = wide.numpy()
    return numbers
