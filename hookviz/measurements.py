"""Measure one pass as typed functions: ablated channels, health, gradients, kernels and others.

The lenses *channels-that-matter*, *health*, *gradient-flow*, *kernels*, *responds-here*,
*gradients*, *trace*, *verify* and *across-images* show the same numbers.
"""

from collections.abc import Sequence
from typing import Any, Unpack

import torch

from hookviz.capturing.inputs import own_shape
from hookviz.explaining.attribution import gradients
from hookviz.explaining.attribution.gradients import TargetGradient
from hookviz.explaining.layers import training_health
from hookviz.explaining.layers.channel_maps import ChannelMaps, RegionSelectivity
from hookviz.explaining.layers.conv_kernels import ConvKernels, compare_kernels
from hookviz.explaining.layers.recomputation import Verification
from hookviz.explaining.layers.training_health import NetworkHealth, WeightGradients
from hookviz.explaining.network_map import followed_pass
from hookviz.explaining.network_map.followed_pass import ExecutionTrace
from hookviz.explaining.patching.part_changes import ChannelEffects
from hookviz.heatmaps import InputOptions, Network, Options, Target
from hookviz.hooking.device import with_numbers
from hookviz.hooking.selection import Selector
from hookviz.lenses.across_images import channel_maps_of
from hookviz.lenses.channels_that_matter import effects_on
from hookviz.lenses.contract.running import resolve_subject
from hookviz.lenses.contract.shared_choices import cell_settings, target_of
from hookviz.lenses.responds_here import selectivity_on
from hookviz.lenses.verify import verification_of
from hookviz.models.wrapping import as_model


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
    return training_health.network_health(*arguments, subject.progress)


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
    return training_health.weight_gradients(
        subject.model, subject.model_input, chosen["target"], subject.progress
    )


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def conv_kernels(
    model: Network,
    image: Any = None,
    *,
    layer: Selector | None = None,
    threshold: float = 0.9,
    **options: Unpack[InputOptions],
) -> ConvKernels:
    """Return a conv layer's weights as the layer uses them, their norms, and near-duplicates.

    Cosines as in `hookviz.explaining.layers.conv_kernels`; weight norm and the like are applied.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it; zeros of the model's input shape by
            default. It decides which layers run, not the weights.
        layer: a conv layer, by its name or what else `observe` takes that fits one; the first one
            by default.
        threshold: the smallest |cosine| of near-duplicates, 0…1.
        options: ``size``, ``whole``, ``progress``.

    Returns:
        `kernels`, ``(output channels, inputs per kernel, taps down, taps across)``, `norms`,
        ``(output channels,)``, `pairs`, ``(P, 2)``, and `cosines`, ``(P,)``.

    Raises:
        SettingError: the layer is no conv layer, or the threshold is out of its range.
        HookVizError: the model has no conv layer.

    >>> model = hookviz.load_model("shapesnet")
    >>> kernels = hookviz.conv_kernels(model, layer="stem.first.conv")
    >>> kernels.kernels.shape, kernels.norms.shape
    ((32, 3, 7, 7), (32,))
    >>> kernels.grid(input_channel=None).shape  # kernels.figure().savefig("kernels.pdf")
    (32, 7, 7)
    """
    image = torch.zeros(1, *own_shape(as_model(model))) if image is None else image
    settings = {"layer": layer, "threshold": threshold}
    subject, chosen = resolve_subject("kernels", model, image, settings, options)
    info = next(each for each in subject.convs if each.name == chosen["layer"])
    return compare_kernels(subject.model, info, chosen["threshold"], subject.progress)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def region_selectivity(
    model: Network,
    image: Any,
    *,
    region: Any,
    layer: Selector | None = None,
    **options: Unpack[InputOptions],
) -> RegionSelectivity:
    """Compare each channel's mean inside of a region of the picture with its mean outside.

    Formulas are at the lens, `hookviz.lenses.responds_here.run`.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module` of images.
        image: anything that `capture` takes, one of it.
        region: ``"rect:left,top,right,bottom"`` in shares of the picture, or a bool mask
            ``(H, W)`` over all of it.
        layer: by its name or what else `observe` takes that fits one; the last with maps of several
            cells by default.
        options: ``size``, ``whole``, ``progress``.

    Returns:
        `score`, `inside`, `outside` and `deviation`, ``(C,)``; `ranking`, the channels by score;
        `weights`, ``(H, W)``, and `maps`, ``(C, H, W)``, of the layer.

    Raises:
        SettingError: the region or the layer is unknown.
        HookVizError: all of the picture is marked, or there are no maps to compare it on.

    >>> model = hookviz.load_model("shapesnet")
    >>> selectivity = hookviz.region_selectivity(
    ...     model, "assets/samples/star.jpg", region="rect:0.25,0.25,0.75,0.75", layer="stage2"
    ... )
    >>> selectivity.score.shape, selectivity.weights.shape, selectivity.ranking.shape
    ((96,), (16, 16), (96,))
    """
    settings = {"layer": layer, "region": region}
    subject, chosen = resolve_subject("responds-here", model, image, settings, options)
    return selectivity_on(subject, chosen["layer"], chosen["region"])


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; this wants gradients
def layer_gradient(
    model: Network,
    image: Any,
    *,
    layer: Selector | None = None,
    target_layer: Selector | None = None,
    channel: int = 0,
    cell: tuple[int, int] | None = None,
    **options: Unpack[Options],
) -> TargetGradient:
    """Differentiate a class's score, or another layer's channel, with respect to a layer's output.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        layer: at whose output the gradient is taken, by its name or what else `observe` takes that
            fits one; ``relu#1`` for its second call; the last conv layer by default.
        target_layer: ask about a channel of this later layer in place of a class.
        channel: its number.
        cell: row and column of one cell of it; its mean by default.
        options: ``target``, ``region``, ``like``, ``size``, ``whole``, ``progress``, as `grad_cam`
            takes them.

    Returns:
        `gradient` and `output`, ``(C, H, W)``; `value`, of the score; `norm`, and
        `max_per_channel`, ``(C,)``.

    Raises:
        SettingError: the layer, channel, cell or class is unknown.
        HookVizError: the score does not depend on the layer, or no gradient gets there.
        ModelError: the network puts out no class scores, or can't be differentiated.

    >>> model = hookviz.load_model("shapesnet")
    >>> gradient = hookviz.layer_gradient(
    ...     model, "assets/samples/star.jpg", layer="stage2.first.conv", target="star"
    ... )
    >>> gradient.gradient.shape, gradient.max_per_channel.shape
    ((96, 16, 16), (96,))
    """
    settings: dict[str, Any] = {"layer": layer, "of": target_layer, "channel": channel}
    settings |= cell_settings(cell, target_layer)
    subject, chosen = resolve_subject("gradients", model, image, settings, options)
    target = target_of(subject, {**chosen, "layer": chosen["of"]})
    arguments = (subject.model, subject.model_input, chosen["layer"], target)
    return gradients.layer_gradient(*arguments, subject.progress)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def trace_execution(model: Network, image: Any, **options: Unpack[InputOptions]) -> ExecutionTrace:
    """Trace every layer call of one pass in order: its sources, shapes, bytes and time.

    Times are medians of three passes after a first one, from just before a call to just after.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        options: ``size``, ``whole``, ``progress``.

    Returns:
        `steps`, a `LayerStep` for each call; `edges`, ``(E, 2)``; `seconds` and `nbytes`,
        ``(steps,)``.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.

    >>> model = hookviz.load_model("shapesnet")
    >>> trace = hookviz.trace_execution(model, "assets/samples/star.jpg")
    >>> trace.labels[0], trace.steps[0].kind, trace.seconds.shape == trace.nbytes.shape
    ('stem.first.conv', 'Conv2d', True)
    >>> trace.edges[0].tolist()  # from the input, 0, to the first call
    [0, 1]
    """
    subject, _ = resolve_subject("trace", model, image, {}, options)
    return followed_pass.trace_execution(subject.model, subject.model_input, subject.progress)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def verify(model: Network, image: Any, **options: Unpack[InputOptions]) -> Verification:
    """Recompute every layer of a pass from its input, and compare within rounding.

    Each layer is called again with a copy of its input; sums of products are computed in double
    precision too, and what `capture` gives of the conv layers is compared with both.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        options: ``size``, ``whole``, ``progress``.

    Returns:
        `agrees`; `checks`, a `LayerCheck` for each layer; `difference` and `relative`,
        ``(layers,)``.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: no layer puts out numbers that can be checked.

    >>> model = hookviz.load_model("shapesnet")
    >>> verification = hookviz.verify(model, "assets/samples/star.jpg")
    >>> verification.agrees, len(verification.checks) == len(verification.relative)
    (True, True)
    """
    subject, _ = resolve_subject("verify", model, image, {}, options)
    return verification_of(subject)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's
def channel_maps(
    model: Network,
    image: Any,
    *,
    images: Sequence[Any],
    layer: Selector | None = None,
    channel: int = 0,
    **options: Unpack[InputOptions],
) -> ChannelMaps:
    """Return one channel's map on an image, and on others by their highest value.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module` of images.
        image: anything that `capture` takes, one of it.
        images: the others; one that was there already is not taken again.
        layer: by its name or what else `observe` takes that fits one; the last with maps by
            default.
        channel: its number.
        options: ``size``, ``whole``, ``progress``.

    Returns:
        `maps`, a ``(H, W)`` of each image; `names`; `highest` and `mean`, ``(N,)``; `cells`, row
        and column of the highest value, ``(N, 2)``; `left_out`, why an image has no map.

    Raises:
        SettingError: the layer does not have that channel.
        HookVizError: the layer puts out no maps, or the image can't be put through.

    >>> model = hookviz.load_model("shapesnet")
    >>> maps = hookviz.channel_maps(
    ...     model, "assets/samples/star.jpg", images=["assets/samples/cat.jpg"], channel=7
    ... )
    >>> maps.names, maps.maps[0].shape, maps.highest.shape
    (('star.jpg', 'cat.jpg'), (8, 8), (2,))
    """
    settings = {"layer": layer, "channel": channel, "images": tuple(images)}
    subject, chosen = resolve_subject("across-images", model, image, settings, options)
    return channel_maps_of(subject, chosen["layer"], chosen["channel"], chosen["images"])
