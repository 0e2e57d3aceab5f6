"""Find what is wrong with the numbers in a network: NaN, infinities, dead, saturated units.

Everything is of one pass over one image, so "dead" means that a unit says nothing about this image.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import TENSORS_IN, constants, in_order, layers
from hookviz.codegen.script_text import quoted, source_of
from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel
from hookviz.drawing.statistics import Histogram, histogram
from hookviz.errors import HookVizError, ModelError
from hookviz.explaining.layers.training_health import (
    WITHOUT_UNITS,
    NetworkHealth,
    OutputHealth,
    count_units,
    largest_of,
    network_health,
    share_saturated,
)
from hookviz.language.saying import localised, mark, say, sentences
from hookviz.lenses.contract.lens import RIGHT, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice
from hookviz.wording import number

_NUMBERS = ("nan", "inf", "largest", "growth", "units", "dead", "saturated")
_HEAD = (
    mark("layer"),
    mark("kind"),
    mark("NaN"),
    mark("Inf"),
    mark("max |x|"),
    mark("× its input"),
    mark("silent units"),
    mark("saturated (%)"),
)


def run(subject: Subject, *, layer: str | None) -> LensOutput:
    """Look at every layer's outputs in order of execution, each call by itself.

    The first layer with NaN or infinities in its output is named, with whether its input or its
    own parameters had them already.

    What a dead unit is, a saturated one, and an activation that explodes, stands at `OutputHealth`
    and `NetworkHealth`.

    Values, one per call: ``nan`` and ``inf`` counts, ``largest`` (max |x| of the finite values),
    ``growth`` (that over the same of what the layer took in), ``units``, ``dead``, ``saturated``
    (NaN where it has no meaning); and ``histogram`` and ``edges`` of the chosen layer.

    Raises:
        ModelError: the network can't take this input, or the chosen layer puts out no real numbers.
        HookVizError: it runs no layer.
    """
    if not subject.trace.layers:
        raise HookVizError(
            say(
                "{model} runs no layer whose numbers could be looked at. Every model of the "
                "catalog does, for example shapesnet.",
                model=subject.model.title,
            )
        )
    last = subject.convs[-1].name if subject.convs else subject.trace.layers[-1].name
    health = network_health(subject.model, subject.model_input, layer or last, subject.progress)
    outputs, first = health.outputs, health.first_bad
    chosen = layer or (first.address.layer if first else last)
    if chosen not in health.values:
        raise ModelError(
            say(
                "Layer {layer!r} of {model} puts out no real numbers to look at.",
                layer=chosen,
                model=subject.model.title,
            )
        )
    bins = histogram(health.values[chosen])
    values = {
        **{name: np.array([getattr(output, name) for output in outputs]) for name in _NUMBERS},
        "histogram": bins.counts,
        "edges": bins.edges,
    }
    panels: tuple[Panel, ...] = (
        TextPanel(_answer(health), "answer"),
        _source(subject, outputs, first),
        _rest_panel(health),
        *_charts(health),
        _histogram(chosen, bins),
        _table(outputs),
    )
    return panels, values


def _answer(health: NetworkHealth) -> str:
    """Say in one sentence whether everything works."""
    first, large, worst = health.first_bad, _exploding(health), _most_silent(health)
    if first is not None:
        return say("Numbers break in {address}.", address=first.address.in_words)
    if large:
        return say("Numbers explode in {address}.", address=large[0].address.in_words)
    if worst is None or not worst.dead:
        return say("Everything works: every unit answers this image.")
    if worst.dead == worst.units:
        return say(
            "{address} is silent: none of its {units:,} units answers this image.",
            address=worst.address.in_words,
            units=worst.units,
        )
    return say(
        "Everything works: {dead:,} of {units:,} units stay silent on this image in {address}, and "
        "fewer elsewhere.",
        dead=worst.dead,
        units=worst.units,
        address=worst.address.in_words,
    )


def _exploding(health: NetworkHealth) -> list[OutputHealth]:
    return [output for output in health.outputs if output.largest > health.limit]


def _most_silent(health: NetworkHealth) -> OutputHealth | None:
    """Return the output with the largest share of dead units; None where none has units."""
    with_units = [output for output in health.outputs if output.units]
    return max(with_units, key=lambda output: output.dead / output.units, default=None)


def _source(
    subject: Subject, outputs: Sequence[OutputHealth], first: OutputHealth | None
) -> TextPanel:
    """Say where NaN and infinities begin."""
    if first is None:
        return TextPanel(
            say(
                "No NaN and no infinity in {output_count:,} outputs of {layer_count:,} layers.",
                output_count=len(outputs),
                layer_count=len(subject.trace.layers),
            ),
            "good",
        )
    kinds = [
        localised(f"{count:,}") + f" {name}"
        for count, name in ((first.nan, "NaN"), (first.inf, "infinite"))
        if count
    ]
    if first.bad_parameters:
        why = say(
            "Its own {parameters} has NaN or infinities.",
            parameters=" and ".join(first.bad_parameters),
        )
    elif not first.input_bad:
        why = say(
            "Its input and its weights are finite: its own arithmetic overflowed or is undefined."
        )
    elif bool(torch.isfinite(subject.model_input.tensor).all()):
        why = say(
            "Its input had them already, and every layer before it was fine: a function "
            "between the layers made them, such as a division or an addition."
        )
    else:
        why = say("The network's input has them already.")
    also = sum(output.bad for output in outputs) - 1
    return TextPanel(
        say(
            "{address} ({kind}) is the first layer with {fault_kinds} of {count:,} numbers. "
            "{explanation} {later_count:,} later outputs have them too.",
            address=first.address.in_words,
            kind=first.kind,
            fault_kinds=" and ".join(kinds),
            count=first.count,
            explanation=why,
            later_count=also,
        ),
        "bad",
    )


def _rest_panel(health: NetworkHealth) -> TextPanel:
    """Say which units are dead or saturated, and what explodes."""
    outputs = health.outputs
    said, bad = [], False
    with_units = [output for output in outputs if output.units]
    silent = [output for output in with_units if output.dead == output.units]
    worst = _most_silent(health)
    if silent:
        bad = True
        said.append(
            say(
                "Every unit of {address} is silent on this image.",
                address=silent[0].address.in_words,
            )
        )
    elif worst and worst.dead:
        said.append(
            say(
                "Most silent units on this image: {dead:,} of {units:,} in {address}.",
                dead=worst.dead,
                units=worst.units,
                address=worst.address.in_words,
            )
        )
    else:
        said.append(say("No unit is silent on this image."))
    bounded = [output for output in outputs if output.saturated >= 0]
    if bounded:
        most = max(bounded, key=lambda output: output.saturated)
        said.append(
            say(
                "Most saturated: {percent} % of the outputs of {address}.",
                percent=number(100 * most.saturated),
                address=most.address.in_words,
            )
            if most.saturated
            else say("Nothing is saturated.")
        )
    large = _exploding(health)
    if large:
        bad = True
        said.append(
            say(
                "Activations explode in {exploding_count:,} of {output_count:,} outputs, first "
                "in {address}: |x| up to {largest}.",
                exploding_count=len(large),
                output_count=len(outputs),
                address=large[0].address.in_words,
                largest=number(large[0].largest),
            )
        )
    return TextPanel(sentences(*said), "bad" if bad else "plain")


def _charts(health: NetworkHealth) -> tuple[ChartPanel, ChartPanel]:
    outputs = health.outputs
    labels = tuple(output.address.in_words for output in outputs)
    shares = {
        say("silent"): np.array(
            [100 * output.dead / (output.units or np.nan) for output in outputs]
        )
    }
    saturated = np.array([100 * output.saturated for output in outputs])
    if np.isfinite(saturated).any():
        shares[say("saturated")] = saturated
    dead = ChartPanel(
        say("Silent and saturated units") if "saturated" in shares else say("Silent units"),
        labels,
        shares,
        kind="lines",
        unit=say("of a layer (%)"),
        caption=say(
            "On this image. Silent: 0 or constant everywhere. Saturated: within 1 % of an end."
        ),
    )
    sizes = ChartPanel.of(health.chart, say("Of the finite values, in order of execution."))
    return dead, sizes


def _histogram(layer: str, bins: Histogram) -> ChartPanel:
    count = int(bins.counts.sum()) + bins.left_out
    return ChartPanel(
        say("What {layer} puts out", layer=layer),
        tuple(map(number, bins.middles)),
        {say("values"): bins.counts.astype(np.float64)},
        unit=say("how many values"),
        places=say("value"),
        log=True,
        is_scale=True,
        caption=say(
            "{count:,} values, {left_out_count:,} of them NaN or infinite and left out.",
            count=count,
            left_out_count=bins.left_out,
        ),
    )


def _table(outputs: Sequence[OutputHealth]) -> TablePanel:
    return TablePanel(
        say("Every layer in order of execution"),
        _HEAD,
        tuple(
            (
                output.address.in_words,
                output.kind,
                output.nan,
                output.inf,
                number(output.largest),
                number(output.growth) if np.isfinite(output.growth) else "–",
                say("{dead:,} of {units:,}", dead=output.dead, units=output.units)
                if output.units
                else "–",
                number(100 * output.saturated) if np.isfinite(output.saturated) else "–",
            )
            for output in outputs
        ),
    )


def script(facts: LensFacts) -> LensCode:
    """Write code that looks at every tensor that the layers put out, as it comes."""
    last = facts.convs[-1] if facts.convs else facts.runs[-1]
    chosen = facts.chosen["layer"]
    lines = (
        constants(replace(facts, chosen={"layer": chosen or last}), layer="of the histogram"),
        layers(facts),
        TENSORS_IN,
        source_of(largest_of, count_units, share_saturated),
        _WATCH.format(kinds=", ".join(map(quoted, sorted(WITHOUT_UNITS)))),
        "values = kept[LAYER]" if chosen else _FIRST_BAD,
        _HISTOGRAM,
    )
    values = {name: f'[row["{name}"] for row in rows]' for name in _NUMBERS}
    return in_order(*lines), values | {"histogram": "histogram", "edges": "edges"}


_WATCH = '''
# Layers of these kinds put out what they are given.
WITHOUT_UNITS = {{{kinds}}}
shape, axis = (), 0  # of what the layer before put out, and where its channels are


def axis_of(module, values):
    """Where the channels are: as in the layer before, if that put out the same shape."""
    global shape, axis
    if isinstance(module, nn.Linear) or type(module) is nn.LayerNorm:
        axis = -1
    elif values.shape != shape or isinstance(module, nn.modules.conv._ConvNd):
        axis = 0
    shape = values.shape
    return axis


rows, kept = [], {{}}  # a row for each tensor of each call, and all numbers of some layers
names = {{module: name for name, module in layers.items()}}
largest_inputs = {{}}  # max |x|


def before(module, inputs):  # it may work in place, so its input is looked at now
    largest_inputs[module] = max(map(largest_of, tensors_in(inputs)), default=np.nan)


def after(module, inputs, output):
    largest_input = largest_inputs.pop(module)
    for tensor in tensors_in(output):
        if not tensor.is_floating_point() or not tensor.numel():
            continue
        values = tensor[0] if tensor.ndim > 1 and len(tensor) == 1 else tensor
        axis = axis_of(module, values)
        has_units = type(module).__name__ not in WITHOUT_UNITS and values.ndim
        units, dead = count_units(values, axis) if has_units else (0, 0)
        row = {{
            "layer": names[module],
            "nan": values.isnan().sum().item(),
            "inf": values.isinf().sum().item(),
            "largest": largest_of(values),
            "growth": largest_of(values) / largest_input if largest_input else np.nan,
            "units": units,
            "dead": dead,
            "saturated": share_saturated(module, values),
        }}
        if row["layer"] == LAYER or row["nan"] or row["inf"]:
            kept.setdefault(row["layer"], values.flatten().clone().numpy())
        rows.append(row)


for module in layers.values():
    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
with torch.no_grad():
    model(batch)'''
_FIRST_BAD = """\
# The layer where NaN and infinities begin comes first.
bad = [row["layer"] for row in rows if row["nan"] or row["inf"]]
values = kept[bad[0] if bad else LAYER]"""
_HISTOGRAM = "histogram, edges = np.histogram(values[np.isfinite(values)].astype(np.float64), 48)"


LENS = Lens(
    slug="health",
    title=mark("Health"),
    question=mark("Is anything broken in the network?"),
    sentence=mark("Where NaN, infinities, silent or saturated units and exploding values begin."),
    group=RIGHT,
    run=run,
    script=script,
    parameters=(
        LayerChoice(
            label=mark("Histogram of"),
            kind="all",
            default="none",
            help=mark("The first bad layer if left open, or the last conv layer."),
        ),
    ),
)
