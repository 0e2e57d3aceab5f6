"""Show who attends to whom: what each patch of the image looks at, in every head of a layer."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order
from hookviz.drawing.attention_panel import (
    CLASS_TOKEN,
    AttentionPanel,
    FixedMap,
    attention_sheet,
    head_maps,
    query_name,
)
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.panels import TextPanel
from hookviz.errors import HookVizError, SettingError
from hookviz.explaining.attention.places import AttentionPlaces, attention_places
from hookviz.explaining.attention.weights import attention
from hookviz.language.saying import joined, mark, say
from hookviz.lenses.contract.lens import LOOKS, Lens, LensOutput, Preview, Subject, highest_ninth
from hookviz.lenses.contract.parameters import ClassChoice, Switch, WholeNumber
from hookviz.lenses.contract.shared_choices import AttendingLayer
from hookviz.wording import number, times

_MIDDLE, _MEAN = -1, -1  # where no patch and no head is chosen
Values = dict[str, NDArray[Any]]


def run(
    subject: Subject, *, layer: str, query: int, head: int, rollout: bool, target: int | None
) -> LensOutput:
    """Lay out the attention of one layer on the image, and roll out that of all layers.

    Weights are computed for this layer alone, in one pass; with `rollout` in another for all, where
    the network's layers attend among the same tokens. Where queries and keys lie is proven
    (`hookviz.explaining.attention.places`); where it can't be, the weights are given and nothing is
    drawn.

    Values: ``weights`` as `hookviz.attention` gives them; and, where they can be laid out, ``maps``
    ``(heads, rows, columns)`` of the chosen patch, NaN where it has no key, their ``mean``,
    ``query_cells`` and ``key_cells`` ``(windows, queries or keys)``, −1 for none, and
    ``class_map``, ``(rows, columns)``, that of the class token's. With `rollout`, ``rollout`` and
    ``gradient_rollout``, ``(tokens, tokens)``.

    Raises:
        ModelError: the network can't take this input, or nothing in it attends.
        SettingError: there is no such patch or head.
    """
    found = attention(subject.model, subject.model_input, layer)
    address = next(iter(found))
    subject.progress(0.2)
    weights = found[address]
    places = attention_places(subject.model, subject.model_input, address, weights)
    subject.progress(0.6)
    values: Values = {"weights": weights.numpy()}
    notes: list[str] = []
    if rollout and places is not None and len(places.queries) > 1:
        notes = [say("Windows let no rollout through: it follows tokens that all layers share.")]
    elif rollout and places is not None:
        rolled, notes = _rollouts(subject, target)
        values |= {name: flow.numpy() for name, flow in rolled.items()}
    subject.progress(1.0)
    if places is None:
        text = say(
            "{layer} attends by {shape} weights, and where on the image its queries and keys lie "
            "can't be proven: they may be made of several patches, or of channels. So nothing is "
            "drawn; hookviz.attention has the numbers.",
            layer=layer,
            shape=times(weights.shape),
        )
        return (TextPanel(text, "note"), *map(_note, notes)), values
    panel = _panel(subject, places, values, layer=layer, query=query, head=head, target=target)
    return (
        *_answer(places, values),
        TextPanel(_about(layer, places, panel.weights.shape[1])),
        panel,
        *map(_note, notes),
    ), values


def _answer(places: AttentionPlaces, values: Values) -> tuple[TextPanel, ...]:
    """Say in one sentence where the class token looks; nothing of a network without one."""
    class_map = values.get("class_map")
    if class_map is None or places.class_token is None:
        return ()
    words = say("The class token attends most {place}.", place=highest_ninth(class_map))
    return (TextPanel(words, "answer"),)


def _note(text: str) -> TextPanel:
    return TextPanel(text, "note")


def _rollouts(subject: Subject, target: int | None) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Return the rollouts that there are, and why others are missing."""
    rolled: dict[str, torch.Tensor] = {}
    try:
        every = attention(subject.model, subject.model_input, target=target)
        rolled["rollout"] = every.rollout()
        if target is not None:
            rolled["gradient_rollout"] = every.gradient_rollout()
    except HookVizError as error:
        return rolled, [str(error)]
    return rolled, []


def _panel(
    subject: Subject,
    places: AttentionPlaces,
    values: Values,
    *,
    layer: str,
    query: int,
    head: int,
    target: int | None,
) -> AttentionPanel:
    """Return the panel, and put what it shows among the values."""
    grid = places.grid
    weights = places.by_window(torch.from_numpy(values["weights"])).numpy()
    queries, keys = places.queries.numpy(), places.keys.numpy()
    asks = _query_patch(layer, queries, grid, query, places.class_token)
    heads = weights.shape[1]
    if not head < heads:
        raise SettingError(
            say(
                "There is no head {head} in {layer}: it has {count}, 0 to {last}.",
                head=head,
                layer=layer,
                count=heads,
                last=heads - 1,
            )
        )
    maps = head_maps(weights, queries, keys, grid, asks)
    values |= {"maps": maps, "mean": maps.mean(0), "query_cells": queries, "key_cells": keys}
    fixed = []
    if places.class_token is not None:
        values["class_map"] = head_maps(weights, queries, keys, grid, CLASS_TOKEN).mean(0)
        fixed.append(FixedMap(say("class token"), values["class_map"]))
    fixed += _flows(subject, places, values, target)
    shown = [maps.mean(0), *maps, *(each.values for each in fixed)]
    photograph = input_picture(subject.model_input)
    names = joined(
        (say("mean"), say("heads 0 to {last}", last=heads - 1), *(e.name for e in fixed))
    )
    return AttentionPanel(
        say("What each patch attends to"),
        attention_sheet(photograph, shown, asks),
        _summarize(maps if head == _MEAN else maps[head : head + 1], grid, asks),
        say("Row by row: {names}. Every map has its own scale, from 0.", names=names),
        photograph=photograph,
        grid=grid,
        weights=weights,
        queries=queries,
        keys=keys,
        class_token=places.class_token,
        fixed=tuple(fixed),
        query=asks,
        head=None if head == _MEAN else head,
    )


def _query_patch(
    layer: str,
    queries: NDArray[np.int64],
    grid: tuple[int, int],
    query: int,
    class_token: int | None,
) -> int:
    """Return the patch that asks: the one that is chosen, the middle one, or the class token."""
    asking = np.unique(queries[queries >= 0])
    if not asking.size and class_token is not None:
        return CLASS_TOKEN
    rows, columns = grid
    if query == _MIDDLE:
        middle = rows // 2 * columns + columns // 2
        return int(asking[np.abs(asking - middle).argmin()])
    if query not in asking:
        raise SettingError(
            say(
                "No patch {query} asks in {layer}: it has {rows} × {columns} patches, counted "
                "row by row from 0 to {last}.",
                query=query,
                layer=layer,
                rows=rows,
                columns=columns,
                last=int(asking[-1]),
            )
        )
    return query


def _flows(
    subject: Subject, places: AttentionPlaces, values: Values, target: int | None
) -> list[FixedMap]:
    """Return the rollouts' maps: the class token's row, or the mean over all without one."""
    label = "" if target is None else subject.label(target)
    names = {
        "rollout": say("rollout"),
        "gradient_rollout": say("gradient rollout, {label}", label=label),
    }
    fixed = []
    for name, title in names.items():
        flow = values.get(name)
        cells = places.keys[0].numpy()
        if flow is None or flow.shape[-1] != len(cells):
            continue
        row = flow.mean(0) if places.class_token is None else flow[places.class_token]
        laid = np.full(places.grid[0] * places.grid[1], np.nan, np.float32)
        laid[cells[cells >= 0]] = row[cells >= 0]
        fixed.append(FixedMap(title, laid.reshape(places.grid)))
    return fixed


def _about(layer: str, places: AttentionPlaces, heads: int) -> str:
    """Say what attends in the layer, whichever patch asks."""
    rows, columns = places.grid
    windows = len(places.queries)
    more = say(", and a class token") if places.class_token is not None else ""
    if windows > 1:
        more = say(", in {count} windows", count=windows)
    return say(
        "In {layer} {heads} heads attend among {rows} × {columns} patches{more}.",
        layer=layer,
        heads=heads,
        rows=rows,
        columns=columns,
        more=more,
    )


def _summarize(maps: NDArray[np.float32], grid: tuple[int, int], asks: int) -> str:
    """Say what the patch that asks attends to most."""
    mean = maps.mean(0)
    top = int(np.nanargmax(mean))
    return say(
        "{query} attends most to {key}: {share} of its attention. {lies} of it goes to patches.",
        query=query_name(asks, grid),
        key=query_name(top, grid),
        share=number(float(mean.ravel()[top])),
        lies=number(float(np.nansum(mean))),
    )


def script(facts: LensFacts) -> LensCode:
    """Write the weights of the layer, for attention by torch's functions and by hand."""
    lines = in_order(constants(facts, layer=""), f"SHAPE = {facts.values['weights']}", _WATCH)
    return lines, {"weights": "weights"}


_WATCH = """
found = []  # weights that are computed while the layer runs
runs = []


class Attending(TorchFunctionMode):
    # Fused attention never holds its weights: here it is a product and a softmax.
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__
        if runs and name == "scaled_dot_product_attention":
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
            given = dict(zip(names, args, strict=False))
            given |= kwargs
            query, key = given["query"], given["key"]
            scale = given.get("scale") or query.shape[-1] ** -0.5
            scores = query @ key.mT * scale
            mask = given.get("attn_mask")
            if given.get("is_causal"):
                mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            if mask is not None and mask.dtype == torch.bool:
                scores = scores.masked_fill(~mask, -torch.inf)
            elif mask is not None:
                scores = scores + mask
            found.append(scores.softmax(-1))
        elif runs and name == "multi_head_attention_forward":
            output, weights = function(
                *args, **kwargs | {"need_weights": True, "average_attn_weights": False}
            )
            found.append(weights)
            return output, weights if kwargs.get("need_weights", True) else None
        output = function(*args, **kwargs)
        if runs and name == "softmax":
            found.append(output)
        return output


layer = model.get_submodule(LAYER)
layer.register_forward_pre_hook(lambda module, given: runs.append(True))
layer.register_forward_hook(lambda module, given, output: runs.clear())
with torch.no_grad(), Attending():
    model(batch)
weights = next(each for each in found if each.numel() == math.prod(SHAPE)).reshape(SHAPE).numpy()"""


LENS = Lens(
    slug="attention",
    title=mark("Attention"),
    question=mark("Who attends to whom?"),
    sentence=mark("Click a patch: what it attends to, in every head, and through all layers."),
    group=LOOKS,
    preview=Preview({"rollout": False}),
    run=run,
    script=script,
    parameters=(
        AttendingLayer(help=mark("Layers that compute attention; the last one at first.")),
        ClassChoice(optional=True, help=mark("Whose score the gradient rollout speaks for.")),
        Switch(
            name="rollout",
            label=mark("Through all layers"),
            default=True,
            help=mark("Rollout and gradient rollout: one more pass, forward and backward."),
        ),
        WholeNumber(
            name="query",
            label=mark("Patch that asks"),
            low=_MIDDLE,
            high=999_999,
            default=_MIDDLE,
            unset=mark("the middle"),
            rare=True,
            help=mark("Row by row from 0. On the page a click chooses it."),
        ),
        WholeNumber(
            name="head",
            label=mark("Head"),
            low=_MEAN,
            high=9_999,
            default=_MEAN,
            unset=mark("the mean"),
            rare=True,
        ),
    ),
)
