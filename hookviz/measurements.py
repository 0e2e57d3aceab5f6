"""Measure one pass as typed functions: channels without which a score falls, health, gradients.

The lenses *channels-that-matter*, *health* and *gradient-flow* show the same numbers.
"""

from typing import Any, Unpack

import torch

from hookviz.explaining.layers import layer_health, weight_gradients
from hookviz.explaining.layers.layer_health import NetworkHealth
from hookviz.explaining.layers.weight_gradients import WeightGradients
from hookviz.explaining.patching.part_changes import ChannelEffects
from hookviz.heatmaps import InputOptions, Network, Options, Target
from hookviz.hooking.device import with_numbers
from hookviz.hooking.selection import Selector
from hookviz.lenses.channels_that_matter import effects_on
from hookviz.lenses.contract.running import resolve_subject


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def ablate_channels(
    model: Network, image: Any, *, layer: Selector | None = None, **options: Unpack[Options]
) -> ChannelEffects:
    """Measure how a class's score changes when each channel of a layer is 0, one at a time.

    Leave-one-out occlusion of units (Zhou et al., "Revisiting the Importance of Individual Units in
    CNNs via Ablation", 2018), at the layer's own output and in each of its calls.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        layer: a conv layer or a linear one that puts out maps, by its name or what else `observe`
            takes that fits one; the last one by default.
        options: ``target``, ``region``, ``like``, ``size``, ``whole``, ``progress``, as `grad_cam`
            takes them.

    Raises:
        SettingError: the layer or the class is unknown.
        ModelError: the network can't go on without a channel, or has no finite class scores.

    >>> model = hookviz.load_model("shapesnet")
    >>> effects = hookviz.ablate_channels(model, "assets/samples/star.jpg", target="star")
    >>> effects.layer, effects.score_changes.shape, effects.flips
    ('stage3.shortcut.conv', (128,), 0)
    """
    subject, chosen = resolve_subject(
        "channels-that-matter", model, image, {"layer": layer}, options
    )
    layers = subject.trace.convs_and_linears
    info = next(each for each in layers if each.name == chosen["layer"])
    return effects_on(chosen["target"], subject, info)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def network_health(
    model: Network, image: Any, *, layer: Selector | None = None, **options: Unpack[InputOptions]
) -> NetworkHealth:
    """Check every layer's output in one pass for NaN, infinities, dead units and sizes.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        layer: whose numbers are returned too, in `NetworkHealth.values`.
        options: ``size``, ``whole``, ``progress``.

    Raises:
        SettingError: the layer is unknown.
        ModelError: the network can't take this input.

    >>> model = hookviz.load_model("shapesnet")
    >>> health = hookviz.network_health(model, "assets/samples/star.jpg")
    >>> health.first_bad is None, health.outputs[0].kind, health.outputs[0].units
    (True, 'Conv2d', 32)
    """
    subject, chosen = resolve_subject("health", model, image, {"layer": layer}, options)
    arguments = (subject.model, subject.model_input, chosen["layer"] or "")
    return layer_health.network_health(*arguments, subject.progress)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; this wants gradients
def gradient_flow(
    model: Network,
    image: Any,
    *,
    target: Target = None,
    **options: Unpack[InputOptions],
) -> WeightGradients:
    """Compute the gradients of the weights that one training step on one image would have.

    The loss is −log of the class's probability, or −score where there are no probabilities. Batch
    norm uses its stored averages, and no weight is changed.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        target: a class by number or name, or a function of the network's output; the likeliest
            class by default.
        options: ``size``, ``whole``, ``progress``.

    Raises:
        SettingError: the class is unknown.
        ModelError: no layer has weights of its own, the network puts out no class scores, or it
            can't be differentiated.

    >>> model = hookviz.load_model("shapesnet")
    >>> gradients = hookviz.gradient_flow(model, "assets/samples/star.jpg", target="circle")
    >>> gradients.by_layer["stem.first.conv"].shape, gradients.norms.shape
    (torch.Size([32, 3, 7, 7]), (11,))
    """
    arguments = {**options, "target": target}
    subject, chosen = resolve_subject("gradient-flow", model, image, {}, arguments)
    return weight_gradients.weight_gradients(
        subject.model, subject.model_input, chosen["target"], subject.progress
    )
