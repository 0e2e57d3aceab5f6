"""Show how many weights can be removed before the prediction changes.

Of convolutions, and of linear layers over tokens or maps with channels last, whose channels are the
rows of their matrix; those that put out vectors, such as a classifier, keep theirs. By six methods,
weight by weight or channel by channel, without training afterwards; which go is said in
`hookviz.explaining.pruning.pruned_network`. At one share of them the maps of a layer are shown
before and after, and the weights can be kept; of whole channels of convolutions there is a really
smaller network.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constant_of, constants, in_order, scores_without
from hookviz.codegen.script_text import as_maps, source_of
from hookviz.drawing.pair import before_and_after
from hookviz.drawing.panels import ChartPanel, FilePanel, Panel, TablePanel, TextPanel
from hookviz.errors import ModelError
from hookviz.explaining.pruning.compacted_model import remove_pruned_channels
from hookviz.explaining.pruning.pruned_network import (
    METHODS,
    OF_CHANNELS,
    RANDOM,
    Pruning,
    PruningPasses,
    PruningPlan,
    Values,
    plan_pruning,
    without_random,
    without_random_channels,
    without_smallest,
    without_smallest_channels,
)
from hookviz.language.saying import localised, mark, say, say_count
from hookviz.lenses.contract.lens import WHAT_IF, Lens, LensOutput, Preview, Subject
from hookviz.lenses.contract.parameters import LayerChoice, OneOf, RealNumber, WholeNumber
from hookviz.models.checkpoints.files import SUFFIX, weights_bytes
from hookviz.types import Model
from hookviz.wording import number

_HEAD = (
    mark("removed (%)"),
    mark("weights left"),
    mark("prediction"),
    mark("its probability (%)"),
    mark("score of {label}"),
    mark("same?"),
)
_SIZES = ("", mark("parameters"), mark("multiply-adds"), mark("time of a pass (ms)"))
_CONVS, _HERE = mark("every conv layer"), mark("this layer alone")
_EVERYWHERE = mark("every conv and linear layer")
_GOES, _STAYS = mark("go too"), mark("stay, as in torch.nn.utils.prune")
_PROGRESS_FOR_MEASURING = 0.7  # of the run, where effects are measured
_SMALLER = 0.9  # of the rest, after which the smaller network is made and timed
_UNMOVED = mark("unchanged: nothing that these maps depend on goes.")
_STAY_WHOLE = mark(
    "Channels of linear layers over tokens or maps stay in the network, with zeros: those of "
    "convolutions alone can be taken out."
)
_ORDER_OF_REMOVAL = {
    "smallest weights": mark("the smallest go first"),
    "random weights": mark("which go is drawn"),
    "channels by L1 norm": mark(
        "whole channels go, by the L1 norm of their kernels, smallest first"
    ),
    "channels by L2 norm": mark(
        "whole channels go, by the L2 norm of their kernels, smallest first"
    ),
    "random channels": mark("whole channels go, and which is drawn"),
    "channels by effect": mark("whole channels go, first those that change the scores least"),
}


def run(
    subject: Subject,
    *,
    method: str,
    where: str,
    most: float,
    step: int,
    seed: int,
    biases: str,
    keep: float,
    layer: str,
) -> LensOutput:
    """Show the prediction at growing shares of pruned weights, and the weights at one share.

    At share s, ``round(s · n)`` of n weights, or of the channels of every layer, are set to 0, the
    same ones as by `torch.nn.utils.prune`. Of the smallest weights, equal ones go together, so it
    can be more. Linear layers that put out vectors stay, such as a classifier, and so do biases,
    but for those of whole channels that go (see `hookviz.prune`). Values, one per share: ``shares``
    asked for and ``removed``, both 0…1, ``logits`` ``(shares, classes)``, ``top`` the likeliest
    class, ``top_probability``, and ``logit`` and ``probability`` of the class that the whole
    network predicts. At the share to keep: ``kept_share``, ``kept_removed``, ``kept_logits``
    ``(classes,)``, and where the layer puts out maps ``before`` and ``after`` ``(C, H, W)``. Of the
    smaller network, where there is one: ``smaller_logits``, ``parameters``, ``multiply_adds`` and
    ``seconds_of_a_pass``, the last three before and after.

    Raises:
        ModelError: no such layer has weights of its own, or the network no finite class scores, or
            there are too many channels to measure their effects.
    """
    first = subject.top_class
    if not bool(torch.isfinite(subject.answer.scores).all()):
        raise ModelError(
            say(
                "{model} gives scores of NaN or infinity for this image, so there is no "
                "prediction to lose. The lens health says in which layer they begin.",
                model=subject.model.title,
            )
        )
    among = subject.convs if where == _CONVS else subject.trace.convs_and_linears
    names = tuple(each.name for each in among if where != _HERE or each.name == layer)
    plan = plan_pruning(
        subject.model,
        names,
        method,
        seed=seed,
        shape=None if biases == _STAYS else subject.shape,
        model_input=subject.model_input,
        progress=lambda share: subject.progress(_PROGRESS_FOR_MEASURING * share),
    )
    shares = np.array([*np.arange(0, most, step), most]) / 100
    begun = _PROGRESS_FOR_MEASURING if plan.effects else 0.0
    ends = begun + (1 - begun) * (_SMALLER if plan.norms is not None else 1)
    passes = PruningPasses(
        subject.model,
        subject.model_input,
        plan,
        len(shares) + 1,
        progress=lambda share: subject.progress(begun + (ends - begun) * share),
    )
    values = passes.over_shares(shares, first, subject.answer.reading)
    kept = passes.kept(keep / 100, subject.capture(layer)[layer])
    panels = _panels(subject, values, first, passes.pruning, plan)
    if "after" in kept:
        panels += before_and_after(layer, kept["before"], kept["after"], say(_UNMOVED))
    convs = {conv.name for conv in subject.convs}
    if plan.norms is not None and not convs.issuperset(passes.pruning.weights):
        panels = (*panels, TextPanel(say(_STAY_WHOLE), "note"))
    if plan.norms is not None and not convs.isdisjoint(passes.pruning.weights):
        table, figures = _size_table(
            subject, plan.pruned(subject.model, keep / 100), keep / 100, ends
        )
        panels, kept = (*panels, table), kept | figures
    scope = {
        _HERE: say("in {layer}", layer=layer),
        _CONVS: say("in every conv layer"),
        _EVERYWHERE: say("in every conv and linear layer"),
    }[where]
    said = say(
        "{percent:.4g} % {layers}: {method}. hookviz.load_model reads the file again.",
        percent=keep,
        layers=scope,
        method=say(method),
    )
    stem = re.sub(r"[^\w.-]", "-", subject.model.name)
    file = FilePanel(
        say("The pruned weights"),
        f"{stem}-pruned{SUFFIX}",
        lambda model: weights_bytes(plan.pruned(model, keep / 100)),
        said,
    )
    return (*panels, file), values | kept


def _size_table(
    subject: Subject, pruned: Model, share: float, begun: float
) -> tuple[Panel, Values]:
    """Make the network without its removed channels; return a table of sizes, or why not."""
    try:
        small = remove_pruned_channels(
            pruned,
            subject.model_input,
            progress=lambda done: subject.progress(begun + (1 - begun) * done),
        )
    except ModelError as error:
        return TextPanel(str(error), "note"), {}
    rows = tuple(
        (
            name,
            small.parameters[which],
            small.multiply_adds[which],
            number(1000 * small.seconds[which]),
        )
        for which, name in enumerate((say("with channels of 0"), say("without them")))
    )
    layers = len(small.removed)
    said = say_count(
        "{count:,} channels of {layer_count:,} layer are taken out; the scores differ by "
        "{difference} at most.",
        "{count:,} channels of {layer_count:,} layers are taken out; the scores differ by "
        "{difference} at most.",
        max(1, layers),
        count=sum(small.removed.values()),
        layer_count=layers,
        difference=number(small.difference),
    )
    if small.whole:
        name, why = next(iter(small.whole.items()))
        said += say(
            " {count:,} more can't do without theirs, such as {name}: {reason}.",
            count=len(small.whole),
            name=name,
            reason=why,
        )
    figures = {
        "parameters": np.array(small.parameters),
        "multiply_adds": np.array(small.multiply_adds),
        "seconds_of_a_pass": np.array(small.seconds),
        "smaller_difference": np.array(small.difference),
    }
    return TablePanel(
        say("Really smaller, at {share:.4g} %", share=100 * share), _SIZES, rows, said
    ), figures


def _panels(
    subject: Subject, values: Values, first: int, pruning: Pruning, plan: PruningPlan
) -> tuple[Panel, ...]:
    label, top, count = subject.label(first), values["top"], pruning.count
    percents = [localised(f"{100 * share:.4g}") for share in values["shares"]]
    other = np.flatnonzero(top != first)
    if len(other):
        first_other = int(other[0])
        held = (
            say("up to {percent} %", percent=percents[first_other - 1])
            if first_other > 1
            else say("at no step")
        )
        end = say(
            "The prediction {label} holds {how_far}; at {percent} % it becomes {other_label}.",
            label=label,
            how_far=held,
            percent=percents[first_other],
            other_label=subject.label(int(top[first_other])),
        )
    else:
        end = say(
            "The prediction stays {label} all the way to {percent} %.",
            label=label,
            percent=percents[-1],
        )
    last = int(other[0]) - 1 if len(other) else len(percents) - 1
    answer = (
        say(
            "Without {percent} % of its weights the network still says {label}.",
            percent=percents[last],
            label=label,
        )
        if last > 0
        else say("Without {percent} % of its weights it says something else.", percent=percents[1])
    )
    layers = len(pruning.weights)
    has_convs_alone = {conv.name for conv in subject.convs}.issuperset(pruning.weights)
    says = TextPanel(
        say(
            "{model} has {count:,} weights in {layers}; {method}. {result}",
            model=subject.model.title,
            count=count,
            layers=say_count("{count:,} conv layer", "{count:,} conv layers", layers)
            if has_convs_alone
            else say_count(
                "{count:,} conv or linear layer", "{count:,} conv or linear layers", layers
            ),
            method=say(_ORDER_OF_REMOVAL[plan.method]),
            result=end,
        ),
        "note" if len(other) else "plain",
    )
    what = say("channels of each layer") if plan.method in OF_CHANNELS else say("weights")
    is_share = "probability" in values
    highest = values["top_probability"] if is_share else values["logits"].max(1)
    chosen = values["probability" if is_share else "logit"]
    scale = 100.0 if is_share else 1.0
    chart = ChartPanel(
        say("Probability while weights are removed")
        if is_share
        else say("Score while weights are removed"),
        tuple(percents),
        {
            say("the likeliest class"): scale * highest.astype(np.float64),
            label: scale * chosen.astype(np.float64),
        },
        kind="lines",
        unit=say("probability (%)") if is_share else say("score"),
        caption=say("Along the bottom: the share of {parts} set to 0, in percent.", parts=what),
        positions=tuple(map(float, values["shares"])),
    )
    rows = tuple(
        (
            percents[index],
            round(count * (1 - float(values["removed"][index]))),
            subject.label(int(top[index])),
            number(scale * float(highest[index])),
            number(float(values["logit"][index])),
            say("yes") if top[index] == first else say("no"),
        )
        for index in range(len(top))
    )
    head = tuple(say(name, label=label) for name in _HEAD)
    return TextPanel(answer, "answer"), says, chart, TablePanel(say("At every share"), head, rows)


def script(facts: LensFacts) -> LensCode:
    """Write the scores at growing shares of pruned weights, and maps at the share to keep."""
    method = facts.chosen["method"]
    asked = constants(facts, most="percent of the weights", step="percent", keep="percent")
    lines = [asked, constants(facts, layer="whose maps are kept")]
    if method in RANDOM:
        lines.append(constants(facts, seed="of what is drawn"))
    of_channels = method in OF_CHANNELS
    goes = of_channels and facts.chosen["biases"] == "go too"
    kinds = "(nn.Conv1d, nn.Conv2d, nn.Conv3d)" if of_channels else "nn.modules.conv._ConvNd"
    lines.append((_NOTE_NORMS if goes else _NOTE).format(kinds=kinds) + _RUN)
    where, last = facts.chosen["where"], facts.layout.last
    if where == _HERE:
        lines.append("layers = [model.get_submodule(LAYER)]")
    elif where == _EVERYWHERE:
        lines += [constant_of(facts.convs_and_linears), _NAMED, _ROWS if of_channels else ""]
    lines.append(_OWN if where != _HERE else "")
    ranks = _SIZES_OF.get(method, "")
    if method == "channels by effect":
        ranks = scores_without(last={_HERE: last, _CONVS: False}.get(where)) + ranks
    function = _selection_function(method)
    arguments = "share, torch.Generator().manual_seed(SEED)" if method in RANDOM else "sizes, share"
    stays = f"{function.__name__}(whole, {arguments})"
    lines += [_WHOLE, ranks, source_of(function), _SHIFTS if goes else ""]
    write, maps = _WITH_SHIFTS if goes else _WEIGHTS, as_maps(facts.layout)
    lines += [_PRUNE.format(stays=stays, maps=maps, write=write)]
    return in_order(*lines), {
        "shares": "shares",
        "removed": "np.array(removed[:-1])",
        "logits": "logits.numpy()",
        "top": "logits.argmax(1).numpy()",
        "top_probability": "chances.max(1).values.numpy()",
        "logit": "logits[:, first].numpy()",
        "probability": "chances[:, first].numpy()",
        "kept_share": "np.array(KEEP / 100)",
        "kept_removed": "np.array(removed[-1])",
        "kept_logits": "scores[-1][0].numpy()",
    } | {
        name: f"maps[{index}][0].numpy()"
        for name, index in (("before", 0), ("after", -1))
        if name in facts.values
    }


def _selection_function(method: str) -> Callable[..., Any]:
    """Return the function by which the method chooses what stays."""
    if method in OF_CHANNELS:
        return without_random_channels if method in RANDOM else without_smallest_channels
    return without_random if method in RANDOM else without_smallest


_NOTE = """\
layers = []


def note(module, inputs, output):
    if isinstance(module, {kinds}):
        layers.append(module)  # those that run, in the order in which they do
"""
_NOTE_NORMS = '''\
layers, norms, origins = [], {{}}, {{}}
# What these put out is 0 in a channel in which they are given 0.
KEEP_ZERO = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.SiLU, nn.GELU, nn.Hardswish, nn.Tanh)
KEEP_ZERO += (nn.Identity, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Dropout)


def note(module, inputs, output):
    """The convolutions that run, and the batch norms that are given what one of them puts out."""
    conv, _, version = origins.get(id(inputs[0]), (None, None, None))
    if inputs[0]._version != version:
        conv = None  # something was written over it, such as a shortcut's sum
    if isinstance(module, {kinds}):
        layers.append(module)
        origins[id(output)] = module, output, output._version
    elif isinstance(module, nn.modules.batchnorm._BatchNorm):
        norms.setdefault(module, set()).add(conv)
    elif isinstance(module, KEEP_ZERO):
        origins[id(output)] = conv, output, output._version
'''
_RUN = """

for module in model.modules():
    if not any(module.children()):
        module.register_forward_hook(note)
with torch.no_grad():
    first = model(batch)[0].argmax().item()  # what the whole network predicts
for module in model.modules():
    module._forward_hooks.clear()"""
_NAMED = "layers = [model.get_submodule(name) for name in NAMES]  # in the order in which they run"
_ROWS = """\
# But for transposed convolutions, whose weights do not begin with the channels they put out.
layers = [layer for layer in layers if not isinstance(layer, nn.modules.conv._ConvTransposeNd)]"""
_OWN = """\
# Those with weights of their own, each weight once, whichever layers share it.
own = [layer for layer in layers if isinstance(layer.weight, nn.Parameter)]
layers = [one for at, one in enumerate(own) if all(one.weight is not o.weight for o in own[:at])]"""
_WHOLE = "whole = [layer.weight.detach().clone() for layer in layers]"

_BY_NORM = "sizes = [torch.linalg.vector_norm(weight.flatten(1), {}, 1) for weight in whole]"
_SIZES_OF = {
    "smallest weights": (
        "sizes = np.sort(torch.cat([weight.abs().flatten() for weight in whole]).numpy())"
    ),
    "channels by L1 norm": _BY_NORM.format(1),
    "channels by L2 norm": _BY_NORM.format(2),
    "channels by effect": """\
# How far all scores move without a channel: a pass for each.
sizes = []
for layer in layers:
    moved = [(scores_without(layer, c) - before).norm() for c in range(len(layer.weight))]
    sizes.append(torch.stack(moved))
""",
}
"""What the method ranks by, in a script."""

_SHIFTS = """
def shifts(layer):
    \"\"\"What makes something of a channel of zeros: its bias, and the batch norm behind it.\"\"\"
    tensors = [layer.bias]
    for norm in [norm for norm, sources in norms.items() if sources == {layer}]:
        tensors += [norm.weight, norm.bias] if norm.affine else [norm.running_mean]
    return [(tensor, tensor.detach().clone()) for tensor in tensors if tensor is not None]


others = [shifts(layer) for layer in layers]
"""
_PRUNE = """\
shares = np.array([*np.arange(0, MOST, STEP), MOST]) / 100
removed, scores, maps = [], [], []


def keep_map(module, inputs, output):  # a copy: the next layer may work in place
    maps.append(output{maps}.clone())


model.get_submodule(LAYER).register_forward_hook(keep_map)
for share in (*shares.tolist(), KEEP / 100):
    stays = {stays}
    count = sum(mask.numel() for mask in stays)
    removed.append((count - sum(mask.sum().item() for mask in stays)) / count)
    with torch.no_grad():
{write}
        scores.append(model(batch))
logits = torch.cat(scores[:-1])  # before the softmax, (shares, classes)
chances = logits.softmax(1)"""

_WEIGHTS = """\
        for layer, weight, mask in zip(layers, whole, stays, strict=True):
            layer.weight.copy_(weight.masked_fill(~mask, 0))"""
_WITH_SHIFTS = """\
        for layer, weight, mask, with_it in zip(layers, whole, stays, others, strict=True):
            layer.weight.copy_(weight.masked_fill(~mask, 0))
            for tensor, values in with_it:
                tensor.copy_(values.masked_fill(~mask.flatten(1).any(1), 0))"""


LENS = Lens(
    slug="prune-weights",
    title=mark("Prune weights"),
    question=mark("How few weights will do?"),
    sentence=mark("How many weights, or channels, can be set to 0 before the prediction changes."),
    group=WHAT_IF,
    preview=Preview({"step": 24}),
    run=run,
    script=script,
    parameters=(
        OneOf(
            name="method",
            label=mark("What goes first"),
            choices=METHODS,
            help=mark("Whole channels go from every layer by the same share."),
        ),
        RealNumber(
            name="keep",
            label=mark("Share to see and keep (%)"),
            low=0,
            high=100,
            default=50,
            help=mark("The maps are shown, and the weights can be downloaded, at this share."),
        ),
        OneOf(name="where", label=mark("Where"), choices=(_CONVS, _EVERYWHERE, _HERE)),
        WholeNumber(
            name="seed",
            label=mark("Seed"),
            matters_for=("method", RANDOM),
            low=0,
            high=2**31 - 1,
            default=0,
        ),
        OneOf(
            name="biases",
            label=mark("Bias and batch norm"),
            matters_for=("method", OF_CHANNELS),
            choices=(_GOES, _STAYS),
            help=mark("Where they go too, the channel puts out 0 and can be taken out."),
        ),
        RealNumber(
            name="most", label=mark("Largest share to remove (%)"), low=1, high=100, default=95
        ),
        WholeNumber(name="step", label=mark("Step (%)"), low=1, high=50, default=10),
        LayerChoice(
            kind="conv or linear",
            default="last map",
            help=mark("Whose maps are shown before and after."),
        ),
    ),
)
