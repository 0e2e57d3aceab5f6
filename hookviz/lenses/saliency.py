"""Show which pixels of the input a class's score, or a channel, depends on most."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.codegen.function_source import source_of
from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.codegen.lens_parts import GRADIENT_AT, in_order, value_of
from hookviz.drawing import overlay
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.grid import grid_of_any
from hookviz.drawing.panels import (
    GridPanel,
    ImagePanel,
    OverlayPanel,
    Panel,
    TextPanel,
    overlay_panel,
)
from hookviz.explaining.attribution.gradients import Numbers, TargetGradient, input_gradient
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.answers import share_of_half
from hookviz.lenses.contract.beside_random import BESIDE_RANDOM
from hookviz.lenses.contract.lens import LOOKS, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import (
    LayerChoice,
    OneOf,
    RealNumber,
    WholeNumber,
)
from hookviz.lenses.contract.target_choice import TARGET_CHANNEL, TARGET_CLASS, call_notes
from hookviz.wording import number

_MEANS = {
    mark("gradient"): mark("how strongly it reacts to a small change of each pixel"),
    mark("input × gradient"): mark("what each pixel adds (red) or takes (blue), to first order"),
    "SmoothGrad": mark("how strongly it reacts to each pixel, on average over noisy copies"),
    mark("guided backpropagation"): mark("which pixels excite it, with what inhibits left out"),
}
METHODS = tuple(_MEANS)


def run(
    subject: Subject,
    *,
    method: str,
    target: int | None,
    layer: str | None,
    channel: int,
    samples: int,
    noise: float,
) -> LensOutput:
    """Map a quantity q, a class's score or a channel's mean, to the input's pixels, ``(H, W)``.

    Of sound ``(C, L)``, a volume and a clip the map has every axis but the channels.

    - gradient: ``max_c |∂q/∂x|`` (Simonyan et al., 2014, section 3).
    - input × gradient: ``Σ_c x · ∂q/∂x``, signed (Shrikumar et al., 2016), x as the network gets
      it, normalised.
    - SmoothGrad: ``max_c |1/n Σ_i ∂q/∂x (x + ε_i)|``, ε normal with a deviation of `noise` times
      (max x − min x) (Smilkov et al., 2017).
    - guided backpropagation: the gradient with negative gradients cut at every ReLU
      (Springenberg et al., 2015).

    Values are ``map``, ``attribution`` (the same before the channels are put together,
    ``(C, H, W)``) and ``value`` (q).

    Raises:
        HookVizError: no gradient gets from q to the input.
        ModelError: no layer is chosen and the network puts out no class scores.
    """
    if layer is None and target is None:
        subject.scored  # noqa: B018 - says that there are no scores
    quantity = AttributionTarget(target, layer, channel) if layer else AttributionTarget(target)
    result, parts, shown = pixel_map(subject, quantity, method, samples, noise)
    signed = method == SIGNED
    what = quantity.describe(subject.model)
    words = say("{method} of {quantity}", method=say(method), quantity=what)
    panels: list[Panel] = [
        TextPanel(_answer(what, shown), "answer"),
        TextPanel(
            say(
                "About {quantity} ({quantity_value}): {explanation}.",
                quantity=what,
                quantity_value=number(result.value),
                explanation=say(_MEANS[method]),
            )
        ),
        *(TextPanel(note, "note") for note in _notes(subject, method, quantity, result)),
        *(_on_image(subject, shown, words, signed=signed) if len(subject.shape) == 3 else ()),
        GridPanel(
            say("Channel by channel of the input"),
            grid_of_any(parts, scale="symmetric", title=words, width=900),
        ),
    ]
    values = {"map": shown, "attribution": parts, "value": np.array(result.value)}
    return tuple(panels), values


def _answer(quantity: str, map_: Numbers) -> str:
    """Say in one sentence on how little of the input half of the map is."""
    share = share_of_half(np.abs(map_))
    if share is None:
        return say("No part of the input counts for {quantity} here.", quantity=quantity)
    return say(
        "Half of what counts for {quantity} is in {percent} % of the input.",
        quantity=quantity,
        percent=number(100 * share),
    )


def pixel_map(
    subject: Subject, quantity: AttributionTarget, method: str, samples: int, noise: float
) -> tuple[TargetGradient, Numbers, Numbers]:
    """Return a method's gradient, its attribution ``(C, H, W)`` and map ``(H, W)``; see `run`."""
    if method == "SmoothGrad":
        result = _smooth(subject, quantity, samples, noise)
    else:
        result = input_gradient(
            subject.model,
            subject.model_input,
            quantity,
            guided=method == "guided backpropagation",
            progress=subject.progress,
        )
    if method == SIGNED:
        parts = result.gradient * result.output
        return result, parts, parts.sum(0)
    return result, result.gradient, np.abs(result.gradient).max(0)


def _on_image(
    subject: Subject, shown: Numbers, words: str, *, signed: bool
) -> tuple[OverlayPanel, ImagePanel]:
    """Lay the map over the image, and draw it alone."""
    end = overlay.color_limit(shown, overlay.BRIGHT)
    colours = coloured(
        shown, "RdBu_r" if signed else "inferno", low=-end if signed else 0.0, high=end
    )
    return (
        overlay_panel(
            say("On the image"),
            subject.model_input,
            subject.image,
            colours,
            opacity=0.75,
            alt=say("{title}, on the image", title=words),
        ),
        ImagePanel(
            say("The map alone"),
            overlay.over_image(subject.model_input, subject.image, colours, opacity=1),
            alt=say("{title}, one value per pixel of the input", title=words),
            caption=say(
                "The strongest 1 % of the pixels share the end colour ({end_value}).",
                end_value=number(end),
            ),
        ),
    )


def _smooth(
    subject: Subject, quantity: AttributionTarget, samples: int, noise: float
) -> TargetGradient:
    """Return the mean of the gradients at noisy copies of the input, with q of the input itself."""
    reporter = ProgressReporter(subject.progress, samples + 1)

    def result_at(image: Tensor) -> TargetGradient:
        result = input_gradient(
            subject.model, subject.model_input, quantity, image=image, progress=reporter.within
        )
        reporter.step()
        return result

    def gradient_at(image: Tensor) -> tuple[Numbers, float]:
        result = result_at(image)
        return result.gradient, result.value

    clean = result_at(subject.model_input.tensor)
    mean = smooth_gradient(gradient_at, subject.model_input.tensor, samples, noise)
    return replace(clean, gradient=mean.astype(clean.gradient.dtype))


def smooth_gradient(
    gradient_at: Callable[[Tensor], tuple[Numbers, float]],
    image: Tensor,
    samples: int,
    noise: float,
) -> NDArray[np.float64]:
    """Return the mean gradient over noisy copies of the input (Smilkov et al., 2017)."""
    generator = torch.Generator().manual_seed(0)  # the same noise every time
    spread = noise * float(image.max() - image.min())
    total = np.zeros(image.shape[1:])
    for _ in range(samples):
        total += gradient_at(image + spread * torch.randn(image.shape, generator=generator))[0]
    return total / samples


def _notes(
    subject: Subject, method: str, quantity: AttributionTarget, result: TargetGradient
) -> list[str]:
    notes = call_notes(subject, quantity.layer)
    if method == "guided backpropagation":
        notes.append(
            say(
                "Negative gradients are cut at {count:,} ReLUs. Such maps show edges of "
                "whatever is there, for any class much the same.",
                count=result.guided,
            )
            if result.guided
            else say(
                "No ReLU lies between {quantity} and the input of {model}, so this is the plain "
                "gradient.",
                quantity=quantity.describe(subject.model),
                model=subject.model.title,
            )
        )
    if not result.gradient.any():
        notes.append(say("The gradient is zero everywhere: no small change of a pixel changes it."))
    return notes


def script(facts: LensFacts) -> LensCode:
    """Write the gradient at the input, and how the chosen method shows it."""
    method = str(facts.chosen["method"])
    function = source_of(smooth_gradient) if method == "SmoothGrad" else ""
    code = _METHODS[method].format(**facts.chosen)
    shown = "attribution.sum(0)" if method == SIGNED else "np.abs(attribution).max(0)"
    return in_order(*value_of(facts), GRADIENT_AT, function, code), {
        "map": shown,
        "attribution": "attribution",
        "value": "value",
    }


SIGNED = "input × gradient"
_METHODS = {
    "gradient": """
attribution, value = gradient_at(batch)  # (C, H, W)""",
    SIGNED: """
# To first order, what each number of the input adds to the value (Shrikumar et al., 2016).
gradient, value = gradient_at(batch)
attribution = gradient * batch[0].numpy()  # (C, H, W)""",
    "SmoothGrad": """
SAMPLES = {samples}
NOISE = {noise}  # its deviation, as a share of the input's range
attribution = smooth_gradient(gradient_at, batch, SAMPLES, NOISE).astype(np.float32)  # (C, H, W)
value = gradient_at(batch)[1]""",
    "guided backpropagation": """
class Guide(TorchFunctionMode):
    # Backwards through every ReLU, only what is positive goes on (Springenberg et al., 2015). Hooks
    # on modules would miss the ReLUs that a network calls as functions.
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {{}}
        output = function(*args, **kwargs)
        name = function.__name__.strip("_")
        relu6 = name == "hardtanh" and kwargs.get("min_val") == 0  # as ReLU6 calls it
        if (relu6 or name in ("relu", "relu6")) and output.requires_grad:
            output.register_hook(lambda gradient: gradient.clamp(min=0))
        return output


with Guide():
    attribution, value = gradient_at(batch)  # (C, H, W)""",
}


LENS = Lens(
    slug="saliency",
    title=mark("Saliency"),
    question=mark("Which pixels decide?"),
    sentence=mark("Which pixels a score depends on most."),
    group=LOOKS,
    run=run,
    script=script,
    parameters=(
        OneOf(
            name="method",
            label=mark("Method"),
            choices=METHODS,
            help=mark("How the gradient at the input is taken and shown."),
        ),
        TARGET_CLASS,
        LayerChoice(
            kind="any",
            of_calls=True,
            label=mark("Ask about layer"),
            default="none",
            help=mark("Ask about a channel of this layer, in place of the class."),
        ),
        TARGET_CHANNEL,
        WholeNumber(
            name="samples",
            label=mark("Noisy copies"),
            matters_for=("method", ("SmoothGrad",)),
            low=1,
            high=200,
            default=20,
            help=mark("SmoothGrad only."),
        ),
        RealNumber(
            name="noise",
            label=mark("Noise"),
            matters_for=("method", ("SmoothGrad",)),
            low=0.0,
            high=1.0,
            default=0.15,
            help=mark("SmoothGrad only: its deviation as a share of the input's range."),
        ),
        BESIDE_RANDOM,
    ),
)
