"""Draw class activation maps: which parts of the image a layer found that speak for a class.

Every method weighs the layer's channels, adds them up and keeps what is above zero. In tests the
numbers are compared before any scaling: Grad-CAM's with captum's `LayerGradCam`, and those of all
methods with what pytorch-grad-cam 1.5.7 computes before it brings its maps to 0…1 and to the
input's size (Eigen-CAM's up to the sign, which a singular vector doesn't have). So too of tokens
and of channels last, with a `reshape_transform` there; here it is found out how a layer lies.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, forward, in_order, target
from hookviz.codegen.script_text import as_maps, source_of
from hookviz.drawing import overlay
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.grid import grid_of_any, make_grid
from hookviz.drawing.panels import (
    ChartPanel,
    GridPanel,
    OverlayPanel,
    Panel,
    TextPanel,
    overlay_panel,
)
from hookviz.errors import HookVizError
from hookviz.explaining.attribution.gradients import (
    Numbers,
    last_layer_with_gradient,
    layer_gradient,
)
from hookviz.explaining.attribution.methods import (
    eigen_cam,
    grad_cam,
    grad_cam_plus_plus,
    layer_cam,
    masked_by,
    score_cam,
    strongest,
    weighed_by,
)
from hookviz.explaining.attribution.target import AttributionTarget, map_shape
from hookviz.language.saying import mark, say, sentences
from hookviz.lenses.contract.beside_random import BESIDE_RANDOM
from hookviz.lenses.contract.lens import LOOKS, Lens, LensOutput, Preview, Subject, highest_ninth
from hookviz.lenses.contract.parameters import (
    ClassChoice,
    LayerChoice,
    OneOf,
    RunnerUp,
    WholeNumber,
)
from hookviz.lenses.contract.shared_choices import call_notes
from hookviz.wording import number, times

_EIGEN = "Eigen-CAM"
_CHART = 16  # channels that the chart shows


@dataclass(frozen=True, eq=False, slots=True)
class ClassActivation:
    """Map before its ReLU, ``(H, W)``, and the channels' weights where the method has them."""

    signed: Numbers = field(repr=False)
    weights: Numbers | None = field(repr=False)
    notes: tuple[str, ...] = ()


def class_activation(
    subject: Subject, method: str, layer: str, target: int | None, top: int
) -> ClassActivation:
    """Weigh a layer's channels by a method and add them up, before the ReLU; see `run`."""
    if target is None and method != _EIGEN:
        subject.scored  # noqa: B018 - says why there is no class to ask about
    if method in (_EIGEN, "Score-CAM"):
        activation = _activation(subject, method, layer, target)
        channels = len(activation)
        if method == _EIGEN or target is None:
            return ClassActivation(*eigen_cam(activation))
        tried = say(
            "Tried: the {top:,} of {channels:,} channels with the largest mean |value|.",
            top=top,
            channels=channels,
        )
        signed, weights = score_cam(
            subject.model,
            subject.model_input,
            activation,
            target=target,
            top=top,
            progress=subject.progress,
        )
        return ClassActivation(signed, weights, (tried,) if top < channels else ())
    quantity = AttributionTarget(target)
    gradient = layer_gradient(subject.model, subject.model_input, layer, quantity, subject.progress)
    notes: tuple[str, ...] = ()
    if not gradient.gradient.any():
        other = last_layer_with_gradient(subject.model, subject.model_input, quantity, but=layer)
        hint = say(" At {layer!r} it is not.", layer=other) if other else ""
        notes = (say("The gradient is zero everywhere at this layer.{hint}", hint=hint),)
    cells = gradient.output.shape[1:]  # of an image rows and columns
    flat = [each.reshape(len(each), 1, -1) for each in (gradient.output, gradient.gradient)]
    if method == "LayerCAM":
        return ClassActivation(layer_cam(*flat).reshape(cells), None, notes)
    formula = grad_cam if method == "Grad-CAM" else grad_cam_plus_plus
    signed, weights = formula(*flat)
    signed = signed.reshape(cells)
    if method == "Grad-CAM++" and (weights < 0).any():
        notes += (
            say(
                "Grad-CAM++ was made for values from zero up, as after a ReLU. {layer} goes "
                "below, so {negative_count:,} of its {weight_count:,} weights are negative.",
                layer=layer,
                negative_count=(weights < 0).sum(),
                weight_count=len(weights),
            ),
        )
    return ClassActivation(signed, weights, notes)


def _activation(subject: Subject, method: str, layer: str, target: int | None) -> Numbers:
    """Return the layer's output, ``(C, H, W)``, of sound, volumes and clips as it lies.

    Raises:
        HookVizError: the layer puts out no maps, or the method needs an image.
    """
    if len(subject.shape) == 3:
        map_shape(subject.model, subject.model_input, layer)
        address = subject.trace.address(layer)
        found = subject.capture(address.layer, logits=True)[str(address)]
        values: Numbers = found.values.numpy()
        if values.ndim != 3:
            raise HookVizError(
                say(
                    "Layer {layer!r} puts out {shape}, not the maps of one image.",
                    layer=layer,
                    shape=times(values.shape),
                )
            )
        return values
    if method == "Score-CAM":
        raise HookVizError(
            say(
                "{model} takes {shape}, and Score-CAM lays masks over images, (C, H, W). The "
                "method 'Grad-CAM' takes any input.",
                model=subject.model.title,
                shape=times(subject.shape),
            )
        )
    quantity = AttributionTarget(target)
    return layer_gradient(subject.model, subject.model_input, layer, quantity).output


def run(
    subject: Subject,
    *,
    method: str,
    layer: str,
    target: int | None,
    top: int,
    beside: str,
    other_target: int | None,
    other_method: str,
) -> LensOutput:
    """Return a method's map, ``max(0, Σ_k w_k A_k)``, A being the layer's output in one call.

    The formulas with their sources are at `grad_cam`, `grad_cam_plus_plus`, `layer_cam`,
    `eigen_cam` and `score_cam` in `hookviz.explaining.attribution.methods`. Values are
    ``map`` after and ``signed`` before the ReLU, ``(H, W)``, ``weights``, ``(C,)``, where the
    method has any, and ``score``, before the softmax. With another class or method beside it, its
    map is ``other_map``.

    Raises:
        HookVizError: the score has no gradient at this layer, or the layer puts out no maps.
        ModelError: the network puts out no class scores, or can't be differentiated.
    """
    cam = class_activation(subject, method, layer, target, top)
    positive = np.maximum(cam.signed, 0)
    others: Numbers | None = None
    if beside == "another class":
        method_beside, target_beside = method, other_target
    else:
        method_beside, target_beside = other_method, target
    if beside != "nothing":
        others = np.maximum(
            class_activation(subject, method_beside, layer, target_beside, top).signed, 0
        )
    label = say("no class") if target is None else subject.label(target)
    about = sentences(
        _score(subject, label, target),
        say("Eigen-CAM asks for no class; bright is where the layer's cells differ most.")
        if method == _EIGEN
        else say("Bright is where {layer} speaks for it.", layer=layer),
    )
    scored = {} if target is None else {"score": np.array(float(subject.answer.scores[target]))}
    if len(subject.shape) != 3:
        shown, numbers = _without_image(subject, layer, cam, others, about)
        return shown, dict(numbers) | scored
    top_colour = overlay.color_limit(positive)
    if others is not None and beside == "another class":  # the same colour for the same number
        top_colour = max(top_colour, overlay.color_limit(others))
    longer = max(subject.shape[1:])  # 640 pixels, as an overlay has them
    rows, columns = (max(1, round(side * 640 / longer)) for side in subject.shape[1:])
    smooth = coloured(overlay.resized(positive, rows, columns), low=0.0, high=top_colour)
    words = say("{method} of {layer} for {label}", method=method, layer=layer, label=label)
    panels: list[Panel] = [
        *([TextPanel(_answer(label, target, positive), "answer")] if positive.any() else []),
        TextPanel(about),
        *(TextPanel(note, "note") for note in _notes(subject, layer, positive, cam.notes)),
        _on_image(
            subject,
            say("On the image") if others is None else f"{say(method)} · {label}",
            words,
            positive,
            top_colour,
        ),
    ]
    if others is not None:
        other = say("no class") if target_beside is None else subject.label(target_beside)
        panels.append(
            _on_image(
                subject,
                f"{say(method_beside)} · {other}",
                say(
                    "{method} of {layer} for {label}",
                    method=method_beside,
                    layer=layer,
                    label=other,
                ),
                others,
                top_colour if beside == "another class" else overlay.color_limit(others),
            )
        )
    panels += [
        overlay_panel(
            say("Smooth"),
            subject.model_input,
            subject.image,
            smooth,
            alt=say("{title}, smooth, on the image", title=words),
            caption=say("The same numbers, linear between the cells."),
        ),
        GridPanel(
            say("The map itself"),
            make_grid(
                positive[None],
                colormap="inferno",
                limits=(0.0, top_colour),  # those of the overlay
                title=words,
                width=480,
            ),
        ),
    ]
    values = {"map": positive, "signed": cam.signed} | scored
    if others is not None:
        values["other_map"] = others
    if cam.weights is not None:
        values["weights"] = cam.weights
        panels.append(_chart(cam.weights, layer))
    return tuple(panels), values


def _answer(label: str, target: int | None, map_: Numbers) -> str:
    """Say in one sentence where the network looks."""
    ninth = highest_ninth(map_)
    if target is None:
        return say("The layer answers most {place}.", place=ninth)
    return say("For {label} the network looks most {place}.", label=label, place=ninth)


def _score(subject: Subject, label: str, target: int | None) -> str:
    """Say how a class is scored; empty without one."""
    if target is None:
        return ""
    answer = subject.answer
    value = answer.text(float(answer.values[target]))
    if not answer.is_share:
        return say("{label}: {value}.", label=label, value=value)
    score = number(float(answer.scores[target]))
    return say("{label}: score {score}, {share}.", label=label, score=score, share=value)


def _without_image(
    subject: Subject, layer: str, cam: ClassActivation, others: Numbers | None, about: str
) -> LensOutput:
    """Show the map of sound, a volume or a clip by itself."""
    positive = np.maximum(cam.signed, 0)
    values = {"map": positive, "signed": cam.signed}
    maps = {say("The map itself"): positive}
    if others is not None:
        values["other_map"] = others
        maps[say("The other map")] = others
    panels: list[Panel] = [
        TextPanel(about),
        *(TextPanel(note, "note") for note in _notes(subject, layer, positive, cam.notes)),
    ]
    for title, each in maps.items():
        grid = grid_of_any(each[None], colormap="inferno", width=480)
        panels.append(GridPanel(title, grid))
    if cam.weights is not None:
        values["weights"] = cam.weights
        panels.append(_chart(cam.weights, layer))
    return tuple(panels), values


def _on_image(
    subject: Subject, title: str, words: str, positive: Numbers, top_colour: float
) -> OverlayPanel:
    """Lay a map over the image, cell by cell."""
    height, width = positive.shape
    return overlay_panel(
        title,
        subject.model_input,
        subject.image,
        coloured(positive, low=0.0, high=top_colour),
        alt=say("{title}, cell by cell, on the image", title=words),
        caption=say(
            "{height}×{width} cells, each where it looks. Black is 0, pale yellow {top_colour}.",
            height=height,
            width=width,
            top_colour=number(top_colour),
        ),
    )


def _notes(subject: Subject, layer: str, positive: Numbers, said: tuple[str, ...]) -> list[str]:
    notes = [*said, *call_notes(subject, layer)]
    if not positive.any():
        notes.append(say("The map is zero everywhere: before its ReLU no cell is above zero."))
    return notes


def _chart(weights: Numbers, layer: str) -> ChartPanel:
    first = np.argsort(-np.abs(weights), kind="stable")[:_CHART]
    return ChartPanel(
        say("Weights of the channels"),
        tuple(map(str, first)),
        {say("weight"): weights[first].astype(np.float64)},
        unit=say("weight"),
        caption=say(
            "The {shown_count} of {channel_count:,} channels that count most, by number.",
            shown_count=len(first),
            channel_count=len(weights),
        ),
        layer=layer,
    )


def script(facts: LensFacts) -> LensCode:
    """Write code that weighs the layer's maps by the chosen method and adds them up."""
    method = str(facts.chosen["method"])
    lines = [constants(facts, layer="whose channels are weighed"), target(facts)]
    if method == "Score-CAM":
        lines += [constants(facts, top="channels that are tried, the strongest ones")]
    functions, calls = _FORMULAS[method]
    values = _GRADIENT if "gradient" in calls else _VALUES
    values = values.format(maps=as_maps(facts.layout))
    lines += [forward(facts), values, source_of(*functions), calls]
    numbers = {"map": "np.maximum(signed, 0)", "signed": "signed", "score": "score.item()"}
    return in_order(*lines), numbers | ({} if method == "LayerCAM" else {"weights": "weights"})


_GRADIENT = """\
batch.requires_grad_()  # so that there are gradients in a frozen network, too
scores, outputs = forward(batch, LAYER)
score = scores[0, TARGET]  # before the softmax
(gradient,) = torch.autograd.grad(score, outputs[LAYER])
found = outputs[LAYER].detach()
activation = found{maps}[0].numpy()  # (C, H, W)
gradient = gradient{maps}[0].numpy()  # likewise
"""
_VALUES = """\
with torch.no_grad():  # this method needs no gradients
    scores, outputs = forward(batch, LAYER)
score = scores[0, TARGET]  # before the softmax
found = outputs[LAYER]
activation = found{maps}[0].numpy()  # (C, H, W)
"""
_SCORES = """\
channels = strongest(activation, TOP)
masked = masked_by(activation[channels], batch)
with torch.no_grad():
    scores = model(masked)[:, TARGET]
signed, weights = weighed_by(scores, channels, activation)"""
_FORMULAS: dict[str, tuple[tuple[Callable[..., Any], ...], str]] = {
    "Grad-CAM": ((grad_cam,), "signed, weights = grad_cam(activation, gradient)"),
    "Grad-CAM++": (
        (grad_cam_plus_plus,),
        "signed, weights = grad_cam_plus_plus(activation, gradient)",
    ),
    "LayerCAM": ((layer_cam,), "signed = layer_cam(activation, gradient)"),
    "Eigen-CAM": ((eigen_cam,), "signed, weights = eigen_cam(activation)"),
    "Score-CAM": ((strongest, masked_by, weighed_by), _SCORES),
}

METHODS = (
    mark("Grad-CAM"),
    mark("Grad-CAM++"),
    mark("LayerCAM"),
    mark("Eigen-CAM"),
    mark("Score-CAM"),
)

LENS = Lens(
    slug="grad-cam",
    title=mark("Grad-CAM and its relatives"),
    question=mark("Where does the network look?"),
    sentence=mark("Which parts of the image a layer found that speak for a class."),
    group=LOOKS,
    preview=Preview(panel=1),
    of_class=True,
    run=run,
    script=script,
    parameters=(
        OneOf(
            name="method",
            label=mark("Method"),
            choices=METHODS,
            help=mark(
                "How the channels are weighed: by gradients, by their variation, or by trying."
            ),
        ),
        LayerChoice(
            kind="any",
            of_calls=True,
            default="last map",
            help=mark("Late layers know what is there, early layers know where."),
        ),
        ClassChoice(optional=True, help=mark("The likeliest class where nothing is chosen.")),
        OneOf(
            name="beside",
            label=mark("Beside it"),
            choices=(mark("nothing"), mark("another class"), mark("another method")),
            help=mark("A second map on the same image, to compare."),
        ),
        RunnerUp(
            optional=True,
            name="other_target",
            label=mark("The other class"),
            matters_for=("beside", ("another class",)),
            help=mark("The second likeliest class where nothing is chosen."),
        ),
        OneOf(
            name="other_method",
            label=mark("The other method"),
            choices=(*METHODS[1:], METHODS[0]),
            matters_for=("beside", ("another method",)),
            help=mark("Of the same layer and class."),
        ),
        WholeNumber(
            name="top",
            label=mark("Channels to try"),
            matters_for=("method", ("Score-CAM",)),
            low=1,
            high=4096,
            default=128,
            help=mark("Score-CAM only: it runs the network once for each."),
        ),
        BESIDE_RANDOM,
    ),
)
