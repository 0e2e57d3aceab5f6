"""Edit channels of a conv or linear layer and show what the network says then and computes next.

Ablation in the sense of Meyes et al., "Ablation Studies in Artificial Neural Networks" (2019), on
activations instead of weights. The edit is made at the layer's own output, each time that it runs;
a batch norm behind it turns the zeros of a channel into a constant. Of a linear layer channels are
the last axis: a channel is edited in every token, those that stand for no cell included, such as
the class token, which the maps do not show.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import steps_after
from hookviz.capturing.wanted_layers import check_can_intervene
from hookviz.codegen.function_source import source_of
from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.codegen.lens_parts import FORWARD, constants, in_order
from hookviz.codegen.wording import as_maps
from hookviz.drawing.pair import before_and_after
from hookviz.drawing.panels import Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, ModelError, SettingError
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import joined, mark, say, say_count
from hookviz.lenses.contract.lens import WHAT_IF, ChannelQuestion, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import Channels, ClassChoice, LayerChoice, OneOf, RealNumber
from hookviz.types import UNKNOWN, Activation, ActivationKey, LayerInfo
from hookviz.wording import number

Map = NDArray[np.float32]
_TOP = 5
_HEAD = (mark("class"), mark("before (%)"), mark("after (%)"), mark("change (points)"))
_HEAD_OF_SCORES = (mark("class"), mark("before"), mark("after"), mark("change"))


@dataclass(frozen=True, slots=True)
class _Edit:
    """Edit of maps ``(1, C, H, W)``: y = x·factor on `channels`, or 0 if |x| ≤ limit.

    A layer that was called without a batch puts out ``(C, H, W)``. Where channels are the `last`
    axis, they are put after the first one, whatever that is, and back.
    """

    mode: str
    channels: tuple[int, ...]
    factor: float
    limit: float
    last: bool

    def __call__(self, output: Tensor) -> Tensor:
        amount = {"scale": [self.factor], "threshold": [self.limit]}.get(self.mode, [])
        maps = output[None] if output.ndim == 3 else output
        if self.last:
            maps = output.movedim(-1, 1)
        edited = _EDITS[self.mode](maps, list(self.channels), *amount)
        return edited.movedim(1, -1) if self.last else edited.reshape(output.shape)


def switched_off(maps: Tensor, channels: list[int]) -> Tensor:
    """Return a copy of maps, ``(N, C, …)``, with 0 in these channels."""
    maps = maps.clone()
    maps[:, channels] = 0  # written, not multiplied: 0 × NaN would stay NaN
    return maps


def kept_only(maps: Tensor, channels: list[int]) -> Tensor:
    """Return a copy of maps, ``(N, C, …)``, with 0 in all but these channels."""
    others = torch.ones(maps.shape[1], dtype=torch.bool, device=maps.device)
    others[channels] = False
    maps = maps.clone()
    maps[:, others] = 0
    return maps


def scaled(maps: Tensor, channels: list[int], factor: float) -> Tensor:
    """Return a copy of maps, ``(N, C, …)``, with these channels multiplied."""
    maps = maps.clone()
    maps[:, channels] *= factor
    return maps


def thresholded(maps: Tensor, channels: list[int], limit: float) -> Tensor:
    """Return a copy of maps, ``(N, C, …)``, with 0 in these channels where |x| ≤ `limit`."""
    maps = maps.clone()
    weak = maps[:, channels].abs() <= limit
    maps[:, channels] = maps[:, channels].masked_fill(weak, 0)
    return maps


_EDITS: dict[str, Callable[..., Tensor]] = {
    mark("switch off"): switched_off,
    mark("keep only"): kept_only,
    mark("scale"): scaled,
    mark("threshold"): thresholded,
}


def run(
    subject: Subject,
    *,
    layer: str,
    channels: tuple[int, ...],
    mode: str,
    factor: float,
    limit: float,
    downstream: str | None,
    target: int,
) -> LensOutput:
    """Return scores and activations before and after the edit.

    Of tokens all are edited, and those that stand for cells are shown. Where the scores have
    probabilities, values: ``probabilities_before`` and ``probabilities_after``
    ``(classes,)``, ``logits_before`` and ``logits_after`` likewise, ``channels`` that were edited,
    ``before`` and ``after`` ``(C, H, W)``, and the same of the downstream layer as
    ``downstream_before`` and ``downstream_after``.

    Raises:
        SettingError: the layer has no such channel, or `downstream` is the edited layer itself.
        ModelError: the network can't go on after the edit, or has no class scores.
    """
    info = next(each for each in subject.trace.convs_and_linears if each.name == layer)
    later = _downstream(subject, info, downstream)
    names = (layer, later) if later else (layer,)
    for name in names:
        check_can_intervene(subject.model, subject.trace, name)
    whole = subject.capture(names, logits=True)
    found = {name: whole[str(ActivationKey(name))] for name in names}
    before = {name: each.values.numpy() for name, each in found.items()}
    if before[layer].ndim != 3:
        raise HookVizError(
            say(
                "{layer} of {model} puts out {shape}, and this lens draws channels that are "
                "maps, (C, H, W). Numbers of any shape are told by the lens health.",
                layer=layer,
                model=subject.model.title,
                shape=before[layer].shape,
            )
        )
    last = found[layer].layout.last
    edit, which = _edit(found[layer], info, _Edit(mode, channels, factor, limit, last))
    after, scores = _edited_pass(subject, layer, found, edit)
    logits = np.stack([subject.answer.scores.numpy(), scores])
    cut = _cut(subject, layer, edit) if np.array_equal(logits[0], logits[1]) else ""
    reading = subject.answer.reading
    shares = reading.values(torch.from_numpy(logits)).numpy()
    panels: list[Panel] = [
        TextPanel(_answer(subject, shares, target), "answer"),
        _verdict(subject, info, which, logits, target),
        *([TextPanel(cut, "note")] if cut else []),
        _table(subject, shares, target),
    ]
    for name in names:
        unmoved = "" if name == layer else say("unchanged: the edit doesn't reach this layer.")
        panels += before_and_after(name, before[name], after[name], unmoved)
    values = {
        "channels": np.array(edit.channels),
        "logits_before": logits[0],
        "logits_after": logits[1],
        "before": before[layer],
        "after": after[layer],
    }
    if reading.is_share:
        values |= {"probabilities_before": shares[0], "probabilities_after": shares[1]}
    if later:
        values |= {"downstream_before": before[later], "downstream_after": after[later]}
    return tuple(panels), values


def _downstream(subject: Subject, info: LayerInfo, chosen: str | None) -> str | None:
    """Return the layer to watch: the one asked for, else the next one; None after the last."""
    after = next((each.name for each in subject.trace.convs_and_linears[info.index + 1 :]), None)
    if chosen == info.name:
        hint = (
            say("for example {next_layer!r}, the next one", next_layer=after)
            if after
            else say("or leave it open")
        )
        raise SettingError(
            say(
                "downstream={layer!r} is the edited layer itself, which is shown anyway: "
                "choose another layer, {hint}.",
                layer=chosen,
                hint=hint,
            )
        )
    return chosen or after


def _edit(found: Activation, info: LayerInfo, edit: _Edit) -> tuple[_Edit, str]:
    """Return the edit and its words; without channels, of the strongest one, or of all."""
    values = found.values.numpy()
    count, channels = len(values), edit.channels
    if channels and channels[-1] >= count:
        raise SettingError(
            say(
                "{layer} has no channel {index}: its channels are 0 to {last}.",
                layer=info.name,
                index=channels[-1],
                last=count - 1,
            )
        )
    named = joined(map(str, channels[:8])) + (say(", …") if len(channels) > 8 else "")
    who = say_count("channel {channels}", "channels {channels}", len(channels), channels=named)
    if not channels and edit.mode == "threshold":
        channels, who = tuple(range(count)), say("all {count:,} channels", count=count)
    elif not channels:
        strength = np.nan_to_num(np.abs(values.astype(np.float64)).mean((1, 2)))
        channels = (int(strength.argmax()),)
        who = say(
            "channel {channels}, the strongest by mean |x| as none was chosen,",
            channels=channels[0],
        )
    if edit.mode == "scale":
        which = say("{channels} times {factor}", channels=who, factor=number(edit.factor))
    elif edit.mode == "threshold":
        chosen = _by_channel(found)[list(channels)].numpy()
        share = number(100 * ((np.abs(chosen) <= edit.limit) & (chosen != 0)).mean())
        which = say(
            "|x| ≤ {limit} set to 0 in {channels}: {share} % of them changed",
            limit=number(edit.limit),
            channels=who,
            share=share,
        )
    else:
        which = (
            say("{channels} switched off", channels=who)
            if edit.mode == "switch off"
            else say("nothing but {channels} kept", channels=who)
        )
    return replace(edit, channels=channels), which


def _by_channel(found: Activation) -> Tensor:
    """View all numbers that a layer put out, its channels first: with the class token, too."""
    return found.raw.movedim(-1, 0) if found.layout.last else found.raw


def _cut(subject: Subject, layer: str, edit: _Edit) -> str:
    """Say which layer wipes the edited channels out anyway, where nothing changed; else nothing."""
    if edit.mode == "keep only":  # the others are edited
        return ""
    channels = list(edit.channels)
    steps = steps_after(subject.trace, layer)
    passed = subject.capture([step.layer for step in steps]) if steps else {}
    kinds = {info.name: info.kind for info in subject.trace.listed}
    for step in steps:
        if not _by_channel(passed[str(step)])[channels].any():
            one = len(channels) == 1
            whose = (
                say("channel {channels} is", channels=channels[0])
                if one
                else say("all the edited channels are")
            )
            return (
                say(
                    "Nothing changes: {layer} ({kind}) had cut it already. After it {subject} 0 "
                    "everywhere, with the edit and without.",
                    layer=step,
                    kind=kinds[step.layer],
                    subject=whose,
                )
                if one
                else say(
                    "Nothing changes: {layer} ({kind}) had cut them already. After it {subject} 0 "
                    "everywhere, with the edit and without.",
                    layer=step,
                    kind=kinds[step.layer],
                    subject=whose,
                )
            )
    return ""


def _edited_pass(
    subject: Subject, layer: str, found: Mapping[str, Activation], edit: _Edit
) -> tuple[dict[str, Map], Map]:
    """Return what the layers put out with the edit, as they are `found` without, and the scores."""
    maps: dict[str, Map] = {}

    def change(call: hooks.Call) -> Tensor | None:
        output = edit(call.output) if call.layer == layer else call.output
        if call.index == 0:  # a copy, since an in-place layer can come next
            before = found[call.layer]
            one = output.reshape(before.raw.shape)  # it may run without a batch
            one = before.layout.maps(one.to("cpu", torch.float32, copy=True))
            maps[call.layer] = one.numpy()
        return output if call.layer == layer else None

    subject.progress(0.4)
    with private_replica(subject.model) as replica, hooks.edit(replica, found, change):
        scores = class_scores(subject.model, replica, subject.model_input.tensor).values
    subject.progress(0.8)
    missing = [name for name in found if name not in maps]
    if missing:
        raise ModelError(
            say(
                "{model} did not run {layer} after the edit.",
                model=subject.model.title,
                layer=missing[0],
            )
        )
    return maps, scores[0].to("cpu", torch.float32).numpy()


def _answer(subject: Subject, shares: Map, target: int) -> str:
    """Say in one sentence what becomes of the class."""
    reading = subject.answer.reading
    return say(
        "With this edit {label} goes from {value} to {new_value}.",
        label=subject.label(target),
        value=reading.text(float(shares[0, target])),
        new_value=reading.text(float(shares[1, target])),
    )


def _verdict(subject: Subject, info: LayerInfo, which: str, logits: Map, target: int) -> TextPanel:
    best = [int(row.argmax()) for row in logits]
    old, new = map(subject.label, best)
    ends = (
        say(", and the prediction stays {label}", label=old)
        if best[0] == best[1]
        else say(
            ", and the prediction changes from {old_label} to {new_label}",
            old_label=old,
            new_label=new,
        )
    )
    reading = subject.answer.reading
    shares = reading.values(torch.from_numpy(logits))[:, target].tolist()
    scores = ""
    if reading.is_share:
        scores = say(
            " (score {score} to {new_score})",
            score=number(logits[0, target]),
            new_score=number(logits[1, target]),
        )
    often = say(" Each of its {calls} calls is edited.", calls=info.calls) if info.calls > 1 else ""
    following = _following(subject, info)
    norm = ""
    if info.prefix_tokens:
        norm = say(" Its class token, or what else stands for no cell, is edited with the others.")
    if following and "BatchNorm" in following.kind:
        norm = say(
            " {next_layer} runs next and makes a constant of a channel of zeros.",
            next_layer=following.name,
        )
    return TextPanel(
        say(
            "{layer}: {edit}. {label} goes from {value} to {new_value}{scores}{outcome}.{calls}"
            "{finding}",
            layer=info.name,
            edit=which,
            label=subject.label(target),
            value=reading.text(shares[0]),
            new_value=reading.text(shares[1]),
            scores=scores,
            outcome=ends if reading.is_share else "",
            calls=often,
            finding=norm,
        ),
        "plain" if best[0] == best[1] else "note",
    )


def _following(subject: Subject, info: LayerInfo) -> LayerInfo | None:
    """Return the layer of any kind that runs after this one."""
    layers = subject.trace.layers
    after = next(layer.index for layer in layers if layer.name == info.name) + 1
    return layers[after] if after < len(layers) else None


def _table(subject: Subject, values: Map, target: int) -> TablePanel:
    """List the five likeliest classes of either pass and the chosen one, likeliest before first."""
    scale = 100 if subject.answer.reading.is_share else 1
    kept = {target}.union(*(np.argsort(-row, kind="stable")[:_TOP].tolist() for row in values))
    rows = tuple(
        (
            say("{label} (chosen)", label=subject.label(index))
            if index == target
            else subject.label(index),
            number(scale * values[0, index]),
            number(scale * values[1, index]),
            number(scale * (values[1, index] - values[0, index])),
        )
        for index in sorted(kept, key=lambda index: -values[0, index])
    )
    head = _HEAD if scale == 100 else _HEAD_OF_SCORES
    return TablePanel(say("The likeliest before and after"), head, rows)


def script(facts: LensFacts) -> LensCode:
    """Write code for the scores and the maps before and after the edit."""
    mode, channels = str(facts.chosen["mode"]), list(facts.chosen["channels"])
    later = facts.chosen["downstream"] or _next(facts)
    facts = replace(facts, chosen={**facts.chosen, "downstream": later, "channels": channels})
    amount = {"scale": ("factor", "that the channels are multiplied by")}
    amount |= {"threshold": ("limit", "up to which |x| becomes 0")}
    name, comment = amount.get(mode, ("", ""))
    last, own = facts.layout.last, as_maps(facts.layout)
    watched = as_maps(facts.layouts.get(str(later), UNKNOWN))
    makes = {own: "as_maps", watched: "as_maps" if watched == own else "watched_as_maps"}
    before, after, watched_before, watched_after = (
        f"{makes[code]}(maps_{when}[{of}])[0]" if code else f"maps_{when}[{of}][0]"
        for of, code in (("LAYER", own), ("DOWNSTREAM", watched))
        for when in ("before", "after")
    )
    strongest = _ALL.format(axis=-1 if last else 1) if mode == "threshold" else _STRONGEST
    edit = _EDITS[mode]
    moved, back = ("output.movedim(-1, 1)", ".movedim(1, -1)") if last else ("output", "")
    lines = [
        constants(facts, layer="whose channels are edited"),
        constants(facts, downstream="which is watched") if later else "",
        constants(facts, **{name: comment}) if name else "",
        FORWARD,
        *(_AS_MAPS.format(name=name, code=code) for code, name in makes.items() if code),
        _BEFORE.format(names="LAYER, DOWNSTREAM" if later else "LAYER"),
        constants(facts, channels="") if channels else strongest.format(maps=before),
        source_of(edit),
        _AFTER.format(
            edit=f"{edit.__name__}({moved}, CHANNELS{', ' * bool(name)}{name.upper()}){back}",
            names="LAYER, DOWNSTREAM" if later else "LAYER",
        ),
    ]
    values = {"channels": "CHANNELS"}
    for when in ("before", "after"):
        values[f"logits_{when}"] = f"logits_{when}[0].numpy()"
        values[f"probabilities_{when}"] = f"logits_{when}[0].softmax(0).numpy()"
    values |= {"before": f"{before}.numpy()", "after": f"{after}.numpy()"}
    if later:
        values["downstream_before"] = f"{watched_before}.numpy()"
        values["downstream_after"] = f"{watched_after}.numpy()"
    return in_order(*lines), values


def _next(facts: LensFacts) -> str | None:
    """Return the conv or linear layer that runs next."""
    after = facts.convs_and_linears.index(facts.chosen["layer"]) + 1
    return facts.convs_and_linears[after] if after < len(facts.convs_and_linears) else None


_AS_MAPS = '''

def {name}(found):
    """The maps of what a layer put out, (N, C, H, W)."""
    return found{code}

'''
_BEFORE = """\
with torch.no_grad():
    logits_before, maps_before = forward(batch, {names})"""
_STRONGEST = """\
# None was chosen: the strongest one, by mean |x|.
CHANNELS = [{maps}.double().abs().mean((1, 2)).argmax().item()]"""
_ALL = "CHANNELS = list(range(maps_before[LAYER].shape[{axis}]))"
_AFTER = """\


def edit(module, inputs, output):  # what a hook returns takes the output's place
    return {edit}


# Hooks run in the order in which they were registered: what is held after this one is edited.
model.get_submodule(LAYER).register_forward_hook(edit)
with torch.no_grad():
    logits_after, maps_after = forward(batch, {names})"""


LENS = Lens(
    slug="ablate",
    title=mark("Switch channels off"),
    question=mark("What if channels were missing?"),
    sentence=mark("What the network says, and computes next, when channels of a layer are edited."),
    group=WHAT_IF,
    of_channel=ChannelQuestion(mark("Switch it off")),
    run=run,
    of_images=True,
    script=script,
    parameters=(
        LayerChoice(kind="conv or linear", default="first"),  # with layers behind it to watch
        Channels(
            help=mark('Such as "0, 3-7". Without any: the strongest one; for a threshold, all.')
        ),
        OneOf(
            name="mode",
            label=mark("Edit"),
            choices=tuple(_EDITS),
            help=mark("Threshold sets every value with |x| up to the limit to 0."),
        ),
        RealNumber(
            name="factor",
            label=mark("Factor to scale by"),
            matters_for=("mode", ("scale",)),
            low=-100,
            high=100,
            default=2,
        ),
        RealNumber(
            name="limit",
            label=mark("Threshold for |x|"),
            matters_for=("mode", ("threshold",)),
            low=0,
            high=1e6,
            default=0.5,
        ),
        LayerChoice(
            name="downstream",
            kind="conv or linear",
            label=mark("Layer to watch"),
            default="none",
            help=mark("The next conv or linear layer if left open."),
        ),
        ClassChoice(),
    ),
)
