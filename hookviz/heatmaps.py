"""Compute heat maps as typed functions: Grad-CAM, saliency, occlusion and others.

The lenses of these names show the same numbers, with words and more pictures.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from hookviz.drawing.heatmap import Heatmap
from hookviz.drawing.overlay import BRIGHT
from hookviz.errors import one_of
from hookviz.explaining.attribution.gradients import Numbers
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.device import with_numbers
from hookviz.hooking.selection import Selector
from hookviz.language.saying import say
from hookviz.lenses import effective_receptive_field as fields
from hookviz.lenses import grad_cam as cams
from hookviz.lenses import integrated_gradients as paths
from hookviz.lenses import occlusion as occlusions
from hookviz.lenses import saliency as gradients
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.running import resolve_subject
from hookviz.lenses.contract.shared_choices import cell_settings, target_of
from hookviz.types import Model, Progress

CamMethod = Literal["grad-cam", "grad-cam++", "layercam", "eigen-cam", "score-cam"]
SaliencyMethod = Literal["gradient", "input x gradient", "smoothgrad", "guided backpropagation"]
Baseline = Literal["zero", "grey", "black", "blurred"]
Network = Model | nn.Module
Target = int | str | Callable[[Any], Tensor] | None


class InputOptions(TypedDict, total=False):
    """How the network gets an image, and who is told how far the work is.

    Attributes:
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        progress: called with the share done, 0…1; what it raises ends it.
    """

    size: int | None
    whole: bool
    progress: Progress


class Options(InputOptions, total=False):
    """What every heat map of a score takes beside its own settings, and `InputOptions`.

    Attributes:
        target: a class by number or name, or a function of what the network puts out for one image,
            batch included, that returns one number; the likeliest class by default.
        region: a part of maps, or the box that overlaps it the most: a `Region`,
            ``"rect:0.2,0.2,0.5,0.5"`` or a mask ``(H, W)``.
        like: of an embedding: another image, or a vector, to whose embedding it is compared.
    """

    target: Target
    region: Any
    like: Any


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; these want gradients
def grad_cam(
    model: Network,
    image: Any,
    *,
    layer: Selector | None = None,
    method: CamMethod = "grad-cam",
    channels_to_try: int = 128,
    **options: Unpack[Options],
) -> Heatmap:
    """Map where a layer speaks for a class: ``max(0, Σ_k w_k A_k)``, A being the layer's output.

    Formulas and their sources are in `hookviz.explaining.attribution.methods`.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        layer: whose maps are weighed, by its name or what else `observe` takes that fits one;
            ``relu#1`` for its second call; the last with maps by default.
        method: how channels are weighed. ``"eigen-cam"`` asks for no class.
        channels_to_try: of ``"score-cam"``, which runs the network for each.
        options: `Options`: ``target``, ``region``, ``like``, ``size``, ``whole``, ``progress``.

    Returns:
        `values` from zero up, ``(H, W)`` of the layer; `signed` before what is below was cut.

    Raises:
        SettingError: the method, layer or class is unknown.
        HookVizError: the score has no gradient at this layer, or the layer puts out no maps.
        ModelError: the network puts out no class scores, or can't be differentiated.

    >>> model = hookviz.load_model("shapesnet")
    >>> cam = hookviz.grad_cam(model, "assets/samples/star.jpg", target="star")
    >>> cam.values.shape, cam.title
    ((8, 8), 'Grad-CAM of stage3.relu_out for star')
    >>> cam.overlay().size  # cam.figure().savefig("star.pdf")
    (640, 640)
    """
    name = _method(method, cams.METHODS)
    settings: dict[str, Any] = {"layer": layer, "method": name, "top": channels_to_try}
    subject, chosen = resolve_subject("grad-cam", model, image, settings, options)
    layer, target = str(chosen["layer"]), chosen["target"]
    cam = cams.class_activation(subject, name, layer, target, chosen["top"])
    label = say("no class") if target is None else subject.label(target)
    title = say("{method} of {layer} for {label}", method=say(name), layer=layer, label=label)
    return _heatmap(subject, chosen, title, np.maximum(cam.signed, 0), signed=cam.signed)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; these want gradients
def saliency(
    model: Network,
    image: Any,
    *,
    method: SaliencyMethod = "gradient",
    layer: Selector | None = None,
    channel: int = 0,
    samples: int = 20,
    noise: float = 0.15,
    **options: Unpack[Options],
) -> Heatmap:
    """Map on which pixels a score, or the mean of a layer's channel, depends most.

    Formulas and their sources are at the lens, `hookviz.lenses.saliency.run`.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        method: ``max_c |∂q/∂x|``, ``Σ_c x · ∂q/∂x``, the first on average over noisy copies, or
            with negative gradients cut at every ReLU.
        layer: ask about a channel of this layer in place of a class.
        channel: its number.
        samples: noisy copies of ``"smoothgrad"``.
        noise: their deviation as a share of the input's range.
        options: `Options`: ``target``, ``region``, ``like``, ``size``, ``whole``, ``progress``.

    Returns:
        `values`, ``(H, W)`` of the input; `signed`, the sum over the input's channels.

    Raises:
        SettingError: the method, layer, channel or class is unknown.
        HookVizError: no gradient gets to the input.
        ModelError: the network puts out no class scores.

    >>> model = hookviz.load_model("shapesnet")
    >>> hookviz.saliency(model, "assets/samples/star.jpg", method="smoothgrad").values.shape
    (128, 128)
    """
    name = _method(method, gradients.METHODS)
    settings: dict[str, Any] = {"method": name, "layer": layer, "channel": channel}
    settings |= {"samples": samples, "noise": noise}
    subject, chosen = resolve_subject("saliency", model, image, settings, options)
    quantity = target_of(subject, chosen)
    _, parts, shown = gradients.pixel_map(
        subject, quantity, name, chosen["samples"], chosen["noise"]
    )
    what = quantity.describe(subject.model)
    title = say("{method} of {quantity}", method=say(name), quantity=what)
    signed = None if name == gradients.SIGNED else parts.sum(0)
    return _heatmap(subject, chosen, title, shown, signed=signed, attribution=parts)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; these want gradients
def integrated_gradients(
    model: Network,
    image: Any,
    *,
    baseline: Baseline = "zero",
    steps: int = 50,
    layer: Selector | None = None,
    channel: int = 0,
    cell: tuple[int, int] | None = None,
    **options: Unpack[Options],
) -> Heatmap:
    """Map what each pixel adds to a score on the way from a baseline (Sundararajan et al., 2017).

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        baseline: where the way begins.
        steps: points of the Gauss-Legendre rule.
        layer: ask about a channel of this layer in place of a class.
        channel: its number.
        cell: row and column of one cell of it; its mean by default.
        options: `Options`: ``target``, ``region``, ``like``, ``size``, ``whole``, ``progress``.

    Returns:
        `values`, ``(H, W)`` of the input, summed over its channels; `signed` is the same.

    Raises:
        SettingError: there is no such layer, channel, cell, class or colour.
        HookVizError: no gradient gets to the input, or the baseline needs an image.
        ModelError: the network puts out no class scores.

    >>> model = hookviz.load_model("shapesnet")
    >>> found = hookviz.integrated_gradients(model, "assets/samples/star.jpg", target="star")
    >>> found.title
    'Integrated gradients of the score of star'
    """
    settings: dict[str, Any] = {"baseline": baseline, "steps": steps}
    settings |= {"layer": layer, "channel": channel, **cell_settings(cell, layer)}
    subject, chosen = resolve_subject("integrated-gradients", model, image, settings, options)
    quantity = target_of(subject, chosen)
    parts = paths.attribute(subject, quantity, chosen["baseline"], chosen["steps"]).attribution
    what = quantity.describe(subject.model)
    title = say("Integrated gradients of {quantity}", quantity=what)
    return _heatmap(subject, chosen, title, parts.sum(0), attribution=parts)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; these want gradients
def occlusion(
    model: Network,
    image: Any,
    *,
    window: int | None = None,
    stride: int | None = None,
    baseline: Baseline = "zero",
    layer: Selector | None = None,
    channel: int = 0,
    cell: tuple[int, int] | None = None,
    **options: Unpack[Options],
) -> Heatmap:
    """Map how much a score falls where a square hides the image (Zeiler and Fergus, 2014).

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        window: side of the square in pixels; a seventh of the shorter side by default.
        stride: pixels from one to the next; a tenth of the shorter side by default.
        baseline: what takes its place.
        layer: ask about a channel of this layer in place of a class.
        channel: its number.
        cell: row and column of one cell of it; its mean by default.
        options: `Options`: ``target``, ``region``, ``like``, ``size``, ``whole``, ``progress``.

    Returns:
        `values`, the mean fall over all squares that hide a pixel, ``(H, W)``; `signed` is the
        same.

    Raises:
        SettingError: the square is larger than the input, or there is no such layer, channel, cell,
            class or colour.
        ModelError: the network puts out no class scores.

    >>> model = hookviz.load_model("shapesnet")
    >>> hookviz.occlusion(model, "assets/samples/star.jpg", window=64, stride=64).values.shape
    (128, 128)
    """
    settings: dict[str, Any] = {"window": window, "stride": stride, "baseline": baseline}
    settings |= {"layer": layer, "channel": channel, **cell_settings(cell, layer)}
    subject, chosen = resolve_subject("occlusion", model, image, settings, options)
    windows = occlusions.windows_on(subject, chosen["window"], chosen["stride"])
    quantity = target_of(subject, chosen)
    found = occlusions.hide(subject, quantity, windows, chosen["baseline"])
    title = say("Occlusion of {quantity}", quantity=quantity.describe(subject.model))
    return _heatmap(subject, chosen, title, found.map)


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; these want gradients
def effective_receptive_field(
    model: Network,
    image: Any,
    *,
    layer: Selector | None = None,
    channel: int | None = None,
    cell: tuple[int, int] | None = None,
    images: Sequence[Any] = (),
    **options: Unpack[InputOptions],
) -> Heatmap:
    """Map which pixels move one cell of a layer: the mean of ``Σ_c |∂q/∂x_c|`` over images.

    Luo et al., "Understanding the Effective Receptive Field in Deep Convolutional Neural Networks"
    (2016).

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module`.
        image: anything that `capture` takes, one of it.
        layer: whose cell it is; the last with maps by default.
        channel: its number; the mean of all channels by default.
        cell: row and column on the layer's map; the middle by default.
        images: to take the mean over beside `image`; one that the network gets at another size is
            left out.
        options: `InputOptions`: ``size``, ``whole``, ``progress``.

    Returns:
        `values`, ``(H, W)`` of the input.

    Raises:
        SettingError: the layer, channel or cell is unknown.
        HookVizError: no gradient gets to the input, or the input is no image.

    >>> model = hookviz.load_model("shapesnet")
    >>> field = hookviz.effective_receptive_field(
    ...     model, "assets/samples/star.jpg", layer="stem.first.conv", cell=(10, 20)
    ... )
    >>> import numpy as np
    >>> [int(each) for each in np.argwhere(field.values)[[0, -1]].ravel()]  # pixels: 7 × 7
    [17, 37, 23, 43]
    """
    settings: dict[str, Any] = {"layer": layer, "channel": -1 if channel is None else channel}
    settings["images"] = tuple(images)
    subject, chosen = resolve_subject("effective-receptive-field", model, image, settings, options)
    layer = str(chosen["layer"])
    row_and_column = cell_settings(cell, layer)
    place = tuple(row_and_column.values()) if cell else fields.middle_cell(subject, layer)
    quantity = AttributionTarget(None, layer, channel, (place[0], place[1]))
    weights, _ = fields.pixel_weights(subject, quantity, chosen["images"], 1 + len(images))
    title = say("Effective receptive field of {unit}", unit=quantity.describe(subject.model))
    values = np.mean(list(weights.values()), axis=0)
    return _heatmap(subject, chosen | row_and_column, title, values, signed=values)


def _method(name: str, known: Sequence[str]) -> str:
    """Return the lens's word for a method, which is written in any case.

    Raises:
        SettingError: there is none of that name.
    """
    words = {each.casefold().replace("×", "x"): each for each in known}
    return words[one_of(say("method"), str(name).casefold().replace("×", "x"), words)]


def _heatmap(
    subject: Subject,
    chosen: Mapping[str, Any],
    title: str,
    values: Numbers,
    *,
    signed: Numbers | None = None,
    attribution: Numbers | None = None,
) -> Heatmap:
    """Return the map of a subject; without `signed` its values have signs themselves."""
    return Heatmap(
        values,
        values if signed is None else signed,
        title,
        chosen,
        subject.model_input,
        subject.image,
        is_signed=signed is None,
        percentile=100 if attribution is None else BRIGHT,
        attribution=attribution,
    )
