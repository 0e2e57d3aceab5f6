"""Check what HookViz shows: recompute every layer from the input that it was given.

The recording of what people see and the pass that checks it have nothing in common but the network
and the image; `hookviz.explaining.layers.recomputation` says what is held against what.
"""

import math
from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import engine
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import TENSORS_IN, in_order, layers
from hookviz.codegen.script_text import source_of
from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError
from hookviz.explaining.layers.recomputation import (
    LayerCheck,
    Verification,
    distance_of,
    recompute,
)
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import RIGHT, Lens, LensOutput, Subject
from hookviz.wording import number

_MOST_BYTES = 512 * 1024**2  # of recorded conv activations that are held for the comparison
_RECORDING = 0.25  # of the work, for the record that people are shown
_HEAD = (
    mark("layer"),
    mark("kind"),
    mark("numbers"),
    mark("largest difference"),
    mark("rounding error"),
    mark("verdict"),
)


def run(subject: Subject) -> LensOutput:
    """Show a verdict, how many digits of each sum of products are right, and a row per layer.

    "Exactly" means that every number is the same to the last bit; NaN agrees with NaN. The layers
    are those without parts, and every convolution and linear layer. The digits that are right are
    ``−log₁₀`` of the largest difference from the double-precision result by the largest size of
    that result.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: no layer puts out numbers that can be checked.
    """
    result = verification_of(subject)
    rows = tuple(_row(name, check) for name, check in result.checks.items())
    listed = result.checks.values()
    panels = [_verdict(result), *_unchecked_panels(result.checks), *_chart(result)]
    return (*panels, TablePanel(say("Every layer"), _HEAD, rows)), {
        "difference": result.difference,
        "relative": result.relative,
        "compared": np.array([check.compared for check in listed]),
        "agrees": np.array([check.agrees for check in listed]),
    }


def verification_of(subject: Subject) -> Verification:
    """Recompute every layer without parts, and every convolution and linear layer.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: no layer puts out numbers that can be checked.
    """
    network = subject.model.network
    leaves = {info.name for info in subject.trace.layers}
    layers = {
        name: calls
        for name, calls in subject.trace.calls.items()
        if name in leaves or isinstance(network.get_submodule(name), nn.Linear | _ConvNd)
    }
    record = _record(subject)
    reporter = ProgressReporter(
        lambda share: subject.progress(_RECORDING + (1 - _RECORDING) * share),
        sum(layers.values()),
    )
    checks = recompute(subject.model, subject.model_input, layers, record, reporter)
    if not any(check.compared for check in checks.values()):
        raise HookVizError(
            say(
                "No layer of {model} can be checked: none puts out numbers again when it is "
                "called again. shapesnet can be checked.",
                model=subject.model.title,
            )
        )
    return Verification(checks, is_record_checked=not _is_too_large(subject))


def _record(subject: Subject) -> Mapping[str, Tensor]:
    """Return what HookViz shows of the conv layers, by written address; empty if it is too much."""
    names = [info.name for info in subject.convs]
    if not names or _is_too_large(subject):
        return {}
    # With scores, as the page asks for them: the pass runs to its end, and so does what a network
    # does to its activations on the way.
    capture = engine.capture(
        subject.model,
        subject.model_input,
        names,
        cache=subject.cache,
        progress=lambda share: subject.progress(_RECORDING * share),
    )
    return {address: activation.values for address, activation in capture.items()}


def _is_too_large(subject: Subject) -> bool:
    return sum(subject.trace.nbytes[info.name] for info in subject.convs) > _MOST_BYTES


def _verdict(result: Verification) -> TextPanel:
    checked, wrong = result.checked, result.wrong
    exact = sum(check.verdict == "exact" for check in checked.values())
    count = say(
        "{exact_count:,} of {checked_count:,} layers agree exactly",
        exact_count=exact,
        checked_count=len(checked),
    )
    if wrong:
        named = "; ".join(
            f"{name} ({check.kind}) {check.problem}" for name, check in list(wrong.items())[:8]
        )
        more = say("; and {count} more", count=len(wrong) - 8) if len(wrong) > 8 else ""
        return TextPanel(
            say_count(
                "{agreement}, and {count:,} does not agree: {layers}{rest}.",
                "{agreement}, and {count:,} do not agree: {layers}{rest}.",
                len(wrong),
                agreement=count,
                layers=named,
                rest=more,
            ),
            "bad",
        )
    close = len(checked) - exact
    says = (
        say("{agreement}, {close_count:,} to within rounding.", agreement=count, close_count=close)
        if close
        else say("{agreement}.", agreement=count)
    )
    numbers = sum(check.compared for check in checked.values())
    shown = sum(check.recorded for check in checked.values())
    says += say(
        " {count:,} numbers were computed a second time from the recorded inputs.",
        count=numbers,
    )
    if not result.is_record_checked:
        says += say(" What is shown of the conv layers was too much to be held against it, too.")
    elif shown:
        says += say_count(
            " What is shown of {count:,} conv layer is the same.",
            " What is shown of {count:,} conv layers is the same.",
            shown,
        )
    return TextPanel(says, "good" if result.is_record_checked else "note")


def _unchecked_panels(checks: Mapping[str, LayerCheck]) -> tuple[Panel, ...]:
    left = [
        say(
            "{layer} ({kind}) {problem}",
            layer=name,
            kind=check.kind,
            problem=check.problem or say("puts out no numbers"),
        )
        for name, check in checks.items()
        if check.verdict == "not checked"
    ]
    if not left:
        return ()
    more = say("; and {count} more", count=len(left) - 4) if len(left) > 4 else ""
    return (
        TextPanel(
            say("Not checked: {layers}{rest}.", layers="; ".join(left[:4]), rest=more), "note"
        ),
    )


def _chart(result: Verification) -> tuple[Panel, ...]:
    chart = result.chart
    if not chart.labels:
        return ()
    caption = say(
        "Conv and linear layers against the same sums in double precision, at the "
        "place where they are furthest apart. Single precision keeps about 7 digits."
    )
    return (ChartPanel.of(chart, caption),)


def _row(name: str, check: LayerCheck) -> tuple[str | int | float, ...]:
    error = "–" if math.isnan(check.relative) else number(check.relative)
    return name, check.kind, check.compared, number(check.difference), error, say(check.verdict)


def script(facts: LensFacts) -> LensCode:
    """Write every layer's output against the same layer called again, and in double precision."""
    names = ("difference", "relative", "compared", "agrees")
    lines = (layers(facts), _AGAIN, TENSORS_IN, source_of(distance_of), _CHECK)
    return in_order(*lines), {
        name: f'[check["{name}"] for check in checks.values()]' for name in names
    }


_AGAIN = """\
for name, module in model.named_modules():
    if isinstance(module, (nn.modules.conv._ConvNd, nn.Linear)):
        layers[name] = module
# Copies of the network without hooks compute again, the second in double precision.
second, double = copy.deepcopy(model), copy.deepcopy(model).double()"""
_CHECK = '''
def is_close(check, module, exact, image, output):
    """Whether a sum of products is off by no more than single precision may be."""
    distance = distance_of(output, exact)
    largest = exact.abs().nan_to_num(0, 0, 0).max().item() or 1.0
    check["relative"] = np.fmax(check["relative"], distance.max().item() / largest)
    # Σ |w · x| + |b| is at most this (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
    bound = module.weight.double().abs().flatten(1).sum(1) * image.abs().max()
    if module.bias is not None:
        bound += module.bias.double().abs()
    bound = bound[:, None, None] if isinstance(module, nn.Conv2d) else bound
    return bool((distance <= (1e-5 * bound).nan_to_num(np.inf)).all())


checks = {}  # by layer, in order of execution
names = {module: name for name, module in layers.items()}
arguments = {}


def before(module, inputs, named):
    arguments[module] = copy.deepcopy((inputs, named))  # an in-place layer writes over them


def after(module, inputs, output):
    inputs, named = arguments.pop(module)
    name = names[module]
    start = {"difference": 0.0, "relative": np.nan, "compared": 0, "agrees": True}
    check = checks.setdefault(name, start)
    again = second.get_submodule(name)(*copy.deepcopy(inputs), **copy.deepcopy(named))
    for ours, theirs in zip(tensors_in(output), tensors_in(again), strict=True):
        difference = distance_of(ours, theirs).max().item()
        check["compared"] += ours.numel()
        check["difference"] = max(check["difference"], difference)
        check["agrees"] &= difference <= 1e-5 * ours.abs().max().item()
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        exact = double.get_submodule(name)(inputs[0].double())
        check["agrees"] &= is_close(check, module, exact, inputs[0], output)


for module in set(layers.values()):
    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(after)
with torch.no_grad():
    model(batch)'''


LENS = Lens(
    slug="verify",
    title=mark("Computed again"),
    question=mark("Is what is shown true?"),
    sentence=mark(
        "Whether what is shown is what the network computes: every layer is computed again."
    ),
    group=RIGHT,
    run=run,
    script=script,
)
