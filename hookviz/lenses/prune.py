"""How many conv weights can go before the prediction does, and what is left of the maps then.

By six methods, weight by weight or channel by channel, without training afterwards; which go is
said in `hookviz.explaining.pruning`. At one share of them the maps of a layer are shown before and
after, and the weights can be kept; of whole channels there is a really smaller network.

Over 300 lines: what is pruned, what is shown of it and what is said know each other closely.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.drawing.before_after import before_and_after
from hookviz.drawing.panels import ChartPanel, FilePanel, Panel, TablePanel, TextPanel
from hookviz.errors import ModelError
from hookviz.explaining.channel_ablation import channel_effects
from hookviz.explaining.pruned_network import Norms, apply_masks, following_norms, pruned_model
from hookviz.explaining.pruning import METHODS, OF_CHANNELS, RANDOM, Pruning
from hookviz.explaining.scoring import class_scores
from hookviz.explaining.smaller_network import smaller
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.plain_tensors import plain
from hookviz.language.saying import localised, mark, say, say_count
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, OneOf, RealNumber, WholeNumber
from hookviz.models.checkpoints.writing import SUFFIX, weights_bytes
from hookviz.types import Model
from hookviz.wording import number

Values = dict[str, NDArray[Any]]


def _look_away(_call: hooks.Call) -> None: ...


_HEAD = (
    mark("removed (%)"),
    mark("weights left"),
    mark("prediction"),
    mark("its probability (%)"),
    mark("score of {label}"),
    mark("same?"),
)
_SIZES = ("", mark("parameters"), mark("multiply-adds"), mark("time of a pass (ms)"))
_EVERYWHERE, _HERE = mark("every conv layer"), mark("this layer alone")
_GOES, _STAYS = mark("go too"), mark("stay, as in torch.nn.utils.prune")
_MEASURING = 0.7  # of the run, where effects are measured
_SMALLER = 0.9  # of the rest, after which the smaller network is made and timed
_UNMOVED = mark("unchanged: nothing that these maps depend on goes.")
_FIRST = {
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


@dataclass(frozen=True, eq=False, slots=True)
class _Recipe:
    """What makes the pruned network of a model again, without keeping it."""

    layers: tuple[str, ...]
    method: str
    seed: int
    effects: Mapping[str, Tensor] | None
    norms: Norms | None

    def pruning(self, network: nn.Module) -> Pruning:
        """What goes at any share."""
        return Pruning(network, self.layers, self.method, seed=self.seed, effects=self.effects)

    def file(self, share: float, model: Model) -> bytes:
        """The pruned network's weights, as safetensors."""
        masks = self.pruning(model.network).masks(share)
        network = apply_masks(model.network, masks, self.norms)
        return weights_bytes(pruned_model(model, network, self.method, share))


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
    """The prediction at growing shares of pruned weights, and one share of them to keep.

    At share s, ``round(s · n)`` of n weights, or of the channels of every layer, are set to 0, the
    same ones as by `torch.nn.utils.prune`. Of the smallest weights, equal ones go together, so it
    can be more. Linear layers stay, and so do biases, but for those of whole channels that go
    (see `hookviz.prune`). Values, one per share: ``shares`` asked for and ``removed``, both 0…1,
    ``logits`` ``(shares, classes)``, ``top`` the likeliest class, ``top_probability``, and
    ``logit`` and ``probability`` of the class that the whole network predicts. At the share to
    keep: ``kept_share``, ``kept_removed``, ``kept_logits`` ``(classes,)``, and where the layer puts
    out maps ``before`` and ``after`` ``(C, H, W)``. Of the smaller network, where there is one:
    ``smaller_logits``, ``parameters``, ``multiply_adds`` and ``seconds_of_a_pass``, the last three
    before and after.

    Raises:
        ModelError: no conv layer has weights of its own, or the network no finite class scores, or
            there are too many channels to measure their effects.
    """
    first = subject.top_class
    assert subject.scored.logits is not None
    if not bool(torch.isfinite(subject.scored.logits).all()):
        raise ModelError(
            say(
                "{model} gives scores of NaN or infinity for this image, so there is no "
                "prediction to lose. The lens health says in which layer they begin.",
                model=subject.model.title,
            )
        )
    recipe = _recipe(subject, layer if where == _HERE else "", method, seed, whole=biases == _GOES)
    shares = np.array([*np.arange(0, most, step), most]) / 100
    passes = _Passes(subject, recipe, len(shares) + 1)
    values = _over_shares(passes, shares, first)
    kept = _kept(passes, keep / 100, layer)
    panels = _panels(subject, values, first, passes.pruning, recipe)
    if "after" in kept:
        panels += before_and_after(layer, kept["before"], kept["after"], say(_UNMOVED))
    if recipe.norms is not None:
        table, figures = _smaller(passes, keep / 100)
        panels, kept = (*panels, table), kept | figures
    place = say("in {layer}", layer=layer) if where == _HERE else say("in every conv layer")
    said = say(
        "{percent:.4g} % {layers}: {method}. hookviz.load_model reads the file again.",
        percent=keep,
        layers=place,
        method=say(method),
    )
    stem = re.sub(r"[^\w.-]", "-", subject.model.name)
    file = FilePanel(
        say("The pruned weights"), f"{stem}-pruned{SUFFIX}", partial(recipe.file, keep / 100), said
    )
    return (*panels, file), values | kept


def _recipe(subject: Subject, layer: str, method: str, seed: int, *, whole: bool) -> _Recipe:
    """What is pruned of all layers, or of one alone, with the effects measured and norms found."""
    network = subject.model.network
    names = (layer,) if layer else tuple(conv.name for conv in subject.convs)
    effects = norms = None
    if method == "channels by effect":
        names = tuple(Pruning(network, names, OF_CHANNELS[0]).weights)
        effects = channel_effects(
            subject.model,
            subject.model_input,
            names,
            lambda share: subject.progress(_MEASURING * share),
        )
    if method in OF_CHANNELS and whole:
        norms = following_norms(subject.model, subject.shape)
    return _Recipe(names, method, seed, effects, norms)


class _Passes:
    """Passes of the network with a share of its weights at 0."""

    def __init__(self, subject: Subject, recipe: _Recipe, count: int) -> None:
        """Get ready for `count` of them."""
        self.subject = subject
        self.recipe = recipe
        self.pruning = recipe.pruning(subject.model.network)
        self._calls = {info.name: info.calls for info in subject.trace.layers}
        begun = _MEASURING if recipe.effects else 0.0
        ends = _SMALLER if recipe.norms is not None else 1.0
        self._reporter = ProgressReporter(
            lambda share: subject.progress(begun + (1 - begun) * ends * share),
            count * sum(self._calls.values()),
        )

    def network(self, share: float) -> tuple[nn.Module, float]:
        """The pruned network, and which share of the weights is gone."""
        masks = self.pruning.masks(share)
        stays = sum(int(mask.sum()) for mask in masks.values())
        made = apply_masks(self.subject.model.network, masks, self.recipe.norms)
        return made, (self.pruning.count - stays) / self.pruning.count

    def scores(self, network: nn.Module, see: Callable[[hooks.Call], None] = _look_away) -> Tensor:
        """The class scores, ``(1, classes)``, while `see` is shown every call."""

        def tell(call: hooks.Call) -> None:
            see(call)
            self._reporter.step()

        subject = self.subject
        with torch.no_grad(), hooks.observe(network, self._calls, tell):
            scores = class_scores(
                subject.model, network, subject.model_input.tensor, self._reporter
            )
        return scores.to("cpu", torch.float32)


def _over_shares(passes: _Passes, shares: NDArray[np.float64], first: int) -> Values:
    logits, removed = [], []
    for share in shares:
        network, gone = passes.network(float(share))
        removed.append(gone)
        logits.append(passes.scores(network))
    scores = torch.cat(logits)
    chances = scores.softmax(1)
    return {
        "shares": shares,
        "removed": np.array(removed),
        "logits": scores.numpy(),
        "top": scores.argmax(1).numpy(),
        "top_probability": chances.max(1).values.numpy(),
        "logit": scores[:, first].numpy(),
        "probability": chances[:, first].numpy(),
    }


def _kept(passes: _Passes, share: float, layer: str) -> Values:
    """The scores at the share to keep, and the layer's maps before and after."""
    maps: list[NDArray[np.float32]] = []

    def see(call: hooks.Call) -> None:
        if call.layer == layer and not call.index:  # a copy, since an in-place layer can come next
            output = plain(call.output)
            assert output is not None  # a convolution's
            maps.append(output.to("cpu", torch.float32, copy=True).numpy())

    network, gone = passes.network(share)
    scores = passes.scores(network, see)
    kept: Values = {
        "kept_share": np.array(share),
        "kept_removed": np.array(gone),
        "kept_logits": scores[0].numpy(),
    }
    before = passes.subject.capture(layer)[layer].values.numpy()
    if before.ndim == 3 and maps and maps[0].size == before.size:
        kept |= {"before": before, "after": maps[0].reshape(before.shape)}
    return kept


def _smaller(passes: _Passes, share: float) -> tuple[Panel, Values]:
    """The network without the channels that are gone, as a row of a table, or why there is none."""
    subject = passes.subject
    network, _ = passes.network(share)
    pruned = pruned_model(subject.model, network, passes.recipe.method, share)
    begun = (_MEASURING + (1 - _MEASURING) * _SMALLER) if passes.recipe.effects else _SMALLER
    try:
        small = smaller(
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
    subject: Subject, values: Values, first: int, pruning: Pruning, recipe: _Recipe
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
    layers = len(pruning.weights)
    says = TextPanel(
        (
            say_count(
                "{model} has {count:,} weights in {layer_count:,} conv layer; {method}. {result}",
                "{model} has {count:,} weights in {layer_count:,} conv layers; {method}. {result}",
                max(1, layers),
                model=subject.model.title,
                count=count,
                layer_count=layers,
                method=say(_FIRST[recipe.method]),
                result=end,
            )
        ),
        "note" if len(other) else "plain",
    )
    what = say("channels of each layer") if recipe.method in OF_CHANNELS else say("conv weights")
    chart = ChartPanel(
        say("Probability while weights are removed"),
        tuple(percents),
        {
            say("the likeliest class"): 100.0 * values["top_probability"].astype(np.float64),
            label: 100.0 * values["probability"].astype(np.float64),
        },
        kind="lines",
        unit=say("probability (%)"),
        caption=say("Along the bottom: the share of {parts} set to 0, in percent.", parts=what),
    )
    rows = tuple(
        (
            percents[index],
            round(count * (1 - float(values["removed"][index]))),
            subject.label(int(top[index])),
            number(100 * float(values["top_probability"][index])),
            number(float(values["logit"][index])),
            say("yes") if top[index] == first else say("no"),
        )
        for index in range(len(top))
    )
    head = tuple(say(name, label=label) for name in _HEAD)
    return says, chart, TablePanel(say("At every share"), head, rows)


LENS = Lens(
    slug="prune-weights",
    title=mark("Prune weights"),
    question=mark("How few weights will do?"),
    sentence=mark(
        "How many conv weights, or channels, can be set to 0 before the prediction changes."
    ),
    run=run,
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
        OneOf(name="where", label=mark("Where"), choices=(_EVERYWHERE, _HERE)),
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
        LayerChoice(default="last map", help=mark("Whose maps are shown before and after.")),
    ),
)
