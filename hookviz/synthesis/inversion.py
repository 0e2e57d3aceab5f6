"""Invert features: rebuild an image from one layer's activations alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.torch_functions import plain
from hookviz.language.saying import mark, say
from hookviz.synthesis.goals import Match, by_picture
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.settings import NONE, MaximizationConfig
from hookviz.types import Model, ModelInput, Pixels

SMOOTH = MaximizationConfig(
    size=None, robustness=NONE, penalty=mark("total variation"), strength=1e-4
)
"""Default of inversions: nothing is moved, and neighbouring pixels are mostly alike."""


@dataclass(frozen=True, eq=False, slots=True)
class Inversion:
    """Image rebuilt from one layer's activations, with the distance that is left.

    Attributes:
        layer: whose activations were matched.
        picture: RGB, uint8, ``(H, W, 3)``.
        distance: ``|Φ(x) − Φ₀|² / |Φ₀|²`` at the layer; 0 for activations that are the same.
        steps: how many were done.
        how: how its passes were rounded, in words; empty of plain ones.
    """

    layer: str
    picture: Pixels = field(repr=False)
    distance: float
    steps: int
    how: str = ""


def begin_inversion(
    model: Model, model_input: ModelInput, layer: str, method: MaximizationConfig = SMOOTH
) -> Optimization:
    """Begin to turn noise into a picture that the layer can't tell from the input.

    The distance at the layer is that of Mahendran and Vedaldi (2015), the picture's parameters are
    a spectrum. What differs between image and picture is what the layer has dropped, or what the
    steps did not find.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        ModelError: its output is not maps, or is all zeros.
        SettingError: `method` means nothing.
        HookVizError: the model takes no pictures.
    """
    shape = tuple(model_input.tensor.shape[1:])
    names = {info.name for info in layer_trace(model, shape).every}
    if layer not in names:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, names)
    outputs: list[object] = []

    def see(call: hooks.Call) -> None:
        output = call.output
        if isinstance(output, torch.Tensor) and (numbers := plain(output)) is not None:
            output = numbers.clone()
        outputs.append(output)
        raise hooks.StopForward

    with private_replica(model) as replica, hooks.observe(replica, (layer,), see):
        forward_pass(model, replica, model_input.tensor)
    if not outputs:
        raise ModelError(
            say("Layer {layer!r} of {model} did not run.", layer=layer, model=model.title)
        )
    activation = by_picture(model, layer, outputs[0], 1, shape)[0]
    if not bool(activation.any()) or not bool(activation.isfinite().all()):
        raise ModelError(
            say(
                "Layer {layer!r} of {model} puts out no finite number but 0 for this image, "
                "so nothing can be rebuilt of it.",
                layer=layer,
                model=model.title,
            )
        )
    if method.space != "Fourier":
        raise SettingError(say("An inversion has a spectrum of its own: space='Fourier'."))
    return Optimization(model, [Match(layer, activation)], method, shape=shape)


def inversion(optimization: Optimization) -> Inversion:
    """Return the picture that an optimization of `begin_inversion` has reached."""
    (layer,) = optimization.layers
    assert layer is not None
    return Inversion(
        layer,
        optimization.pictures()[0],
        optimization.measured()[0],
        optimization.steps,
        optimization.passes.how,
    )


def spread(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Choose up to `count` of the layers, evenly from the first to the last; no layer twice."""
    indices = np.linspace(0, len(names) - 1, min(count, len(names))).round().astype(int)
    return tuple(dict.fromkeys(names[index] for index in indices))
