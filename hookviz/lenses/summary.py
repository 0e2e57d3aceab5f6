"""Show the network as a table: every layer with its shapes, weights and multiply-adds."""

from collections.abc import Sequence

import numpy as np

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import in_order, layers
from hookviz.drawing.panels import TablePanel, TextPanel
from hookviz.explaining.layers.layer_description import amount
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import RIGHT, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import OneOf
from hookviz.types import LayerInfo
from hookviz.wording import number, times

_HEAD = (
    mark("layer"),
    mark("kind"),
    mark("kernel"),
    mark("stride"),
    mark("input"),
    mark("output"),
    mark("parameters"),
    mark("multiply-adds"),
)


def run(subject: Subject, *, layers: str) -> LensOutput:
    """List the layers, a row each, in order of execution.

    Shapes are those of one pass over this input; multiply-adds are `LayerInfo.multiply_adds` times
    the calls. A layer that runs twice counts its parameters once.
    """
    executed = subject.trace.layers
    listed = subject.convs if layers == "convolutions" else executed
    parameters = sum(parameter.numel() for parameter in subject.model.network.parameters())
    work = sum(layer.multiply_adds * layer.calls for layer in executed)
    says = say(
        "{model}: {layer_count:,} layers, {conv_count:,} of them convolutions, "
        "{parameters:,} parameters, {multiply_adds:,} multiply-adds for an input of "
        "{shape}.{note}",
        model=subject.model.title,
        layer_count=len(executed),
        conv_count=len(subject.convs),
        parameters=parameters,
        multiply_adds=work,
        shape=times(subject.shape),
        note=_outside_layers(executed, parameters),
    )
    table = TablePanel(say("Layers in order of execution"), _HEAD, tuple(map(_row, listed)))
    numbers = {
        "parameters": np.array([layer.parameters for layer in listed]),
        "multiply_adds": np.array([layer.multiply_adds * layer.calls for layer in listed]),
    }
    return (TextPanel(_answer(subject, parameters), "answer"), TextPanel(says), table), numbers


def _answer(subject: Subject, parameters: int) -> str:
    """Say in one sentence how much the network has learned, and where most of that is."""
    title, layers = subject.model.title, subject.trace.layers
    largest = max(layers, key=lambda layer: layer.parameters, default=None)
    if largest is None or not largest.parameters:
        return say("{model} has nothing to learn: no layer has weights.", model=title)
    return say(
        "{model} has learned {count} numbers, {percent} % of them in {layer}.",
        model=title,
        count=amount(parameters),
        percent=number(100 * largest.parameters / parameters),
        layer=largest.name,
    )


def _outside_layers(layers: Sequence[LayerInfo], parameters: int) -> str:
    """Explain why the rows' parameters do not add up to the network's; empty where they do."""
    rows = sum(layer.parameters for layer in layers)
    if rows < parameters:
        return say(
            " {parameters:,} of its parameters belong to no layer that a pass runs.",
            parameters=parameters - rows,
        )
    if rows > parameters:
        return say(
            " {rows:,} parameters stand in two rows: layers share them.", rows=rows - parameters
        )
    return ""


def _row(layer: LayerInfo) -> tuple[str | int, ...]:
    return (
        layer.name
        if layer.calls == 1
        else say("{layer} ({calls} calls)", layer=layer.name, calls=layer.calls),
        layer.kind,
        times(layer.kernel_size),
        times(layer.stride),
        times(layer.input_shape),
        times(layer.output_shape),
        layer.parameters,
        layer.multiply_adds * layer.calls,
    )


def script(facts: LensFacts) -> LensCode:
    """Write every layer that runs, what it has learned and how much it multiplies."""
    shown = _CONVS if facts.chosen["layers"] == "convolutions" else "shown = list(work)"
    return in_order(layers(facts), _WORK, shown, _PRINT), {
        "parameters": "[parameters[name] for name in shown]",
        "multiply_adds": "[work[name] for name in shown]",
    }


_WORK = '''work = {}  # by layer, in order of execution
COUNTED = (nn.modules.conv._ConvNd, nn.Linear, nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)


def multiply_adds(module, image, output):
    """A kernel is used at every cell, a matrix for each vector, a recurrent layer at each step."""
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)):
        steps = output[0] if isinstance(output, tuple) else output
        return sum(p.numel() for p in module.parameters()) * steps[..., 0].numel()
    outputs = output[0].numel()
    if isinstance(module, nn.modules.conv._ConvNd):
        cells = (image if module.transposed else output)[0, 0].numel()
        kernel = module.in_channels * module.out_channels // module.groups
        for taps in module.kernel_size:
            kernel *= taps
        return kernel * cells + outputs * (module.bias is not None)
    if isinstance(module, nn.Linear):
        return outputs * module.in_features + outputs * (module.bias is not None)
    return 0


def count_as(name):
    def count(module, inputs, output):
        is_counted = isinstance(module, COUNTED)
        added = multiply_adds(module, inputs[0], output) if is_counted else 0
        work[name] = work.get(name, 0) + added

    return count


for name, module in layers.items():
    module.register_forward_hook(count_as(name))
with torch.no_grad():
    model(batch)
# A number belongs to the innermost of the layers that it lies in.
parameters = dict.fromkeys(work, 0)
for name, parameter in model.named_parameters(remove_duplicate=False):
    owners = [layer for layer in work if name.startswith(f"{layer}.")]
    if owners:
        parameters[max(owners, key=len)] += parameter.numel()'''
_CONVS = """\
shown = [name for name in work if isinstance(layers[name], nn.modules.conv._ConvNd)]"""
_PRINT = """\
for name in shown:
    print(f"{name:32} {parameters[name]:12,} weights {work[name]:14,} multiply-adds")"""


LENS = Lens(
    slug="summary",
    title=mark("Summary"),
    question=mark("What is the network made of?"),
    sentence=mark("What the network is made of, layer by layer: shapes, weights and work."),
    group=RIGHT,
    run=run,
    script=script,
    parameters=(
        OneOf(
            name="layers",
            label=mark("Layers"),
            choices=(mark("all"), mark("convolutions")),
            help=mark("Which rows the table has."),
        ),
    ),
)
