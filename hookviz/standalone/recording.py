"""Ask beforehand all that a page can be asked, in every language, light and dark.

The results are the page's blocks: texts in base64 by their names, each of which the page unpacks
when it is looked at. `record_whole` adds the map of the whole network.
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.drawing.colormaps import GAP_LEVEL, palette_of
from hookviz.explaining.layers.layer_call import FollowingOp, LayerCall
from hookviz.explorer.answering import answer
from hookviz.explorer.channel import channel_facts
from hookviz.explorer.client_files import (
    DARK,
    LIGHT,
    client_fields,
    client_sheets,
    client_words,
    sheet,
)
from hookviz.explorer.glossary import explained
from hookviz.explorer.layers import ResolvedView, call_words, resolve
from hookviz.explorer.origin import (
    AGREES,
    BIAS,
    DIFFERS,
    FOLLOWED,
    NORMALISED,
    ROWS,
    SUM,
    call_or_why_not,
    described,
    explain,
    unexplained,
    upstream_of,
)
from hookviz.explorer.question import Question
from hookviz.explorer.rendering import render
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.catalogs import languages, own_name
from hookviz.language.saying import localised, mark, say
from hookviz.standalone.client_page import (
    CLIENT,
    LANGUAGE,
    THEME,
    Halves,
    columns,
    deflated,
    halves,
    in_base64,
    in_each_language,
    packed,
    varied,
    whole_floats,
)
from hookviz.types import ActivationKey, LayerInfo, Progress, ignore
from hookviz.wording import number

Parts = list[tuple[str, str]]


def call_facts(call: LayerCall, upstream: str | None) -> dict[str, Any]:
    """Return what is known of a convolution's call beside its numbers, as sentences have it.

    `upstream` is the layer whose channels the inputs are, if there is one.
    """
    return {
        "kernel": list(call.kernel.shape),
        "bias": None if call.bias is None else call.bias.tolist(),
        "input": list(call.padded.shape),
        "corner": list(call.corner),
        "stride": list(call.stride),
        "dilation": list(call.dilation),
        "groups": call.groups,
        "output": list(call.output.shape),
        "rounding": call.rounding,
        "upstream": upstream,
        "rows": ROWS,
        "sum": _sum(has_bias=call.bias is not None),
        "steps": [
            {
                "says": _step(step),
                "epsilon": step.epsilon,
                # mean, variance, scale and shift of each channel
                "norm": None if step.norm is None else step.norm.tolist(),
            }
            for step in call.steps
        ],
    }


def call_numbers(call: LayerCall) -> dict[str, str]:
    """Return the numbers of a call: its padded input and its weights, exactly as they are."""
    return {
        "input": whole_floats(call.padded.numpy()),
        "weights": whole_floats(call.kernel.numpy()),
    }


def step_halves(call: LayerCall) -> list[Halves]:
    """Return what the steps after a call put out."""
    return [halves(step.values.numpy()) for step in call.steps]


def _sum(*, has_bias: bool) -> dict[str, Parts]:
    """Return the sentence about the sum, where the network computed the same and where not."""
    bias = say(BIAS) if has_bias else ""
    sentence = say(SUM).replace("{bias_term}", bias)
    return {
        name: explained(sentence.replace("{verdict}", say(verdict)))
        for name, verdict in (("agrees", AGREES), ("differs", DIFFERS))
    }


def _step(step: FollowingOp) -> Parts:
    title = f"{step.kind} {step.layer}".strip()
    sentence = say(FOLLOWED if step.norm is None else NORMALISED)
    epsilon = localised(f"{step.epsilon:g}")
    return explained(sentence.replace("{title}", title).replace("{epsilon:g}", epsilon))


_CHOSEN = ("layer", "channel", "cell", "sort", "top")  # all that a page offers of a view
_ON_MAP = (*_CHOSEN, "inside")  # where it keeps the whole network too
_THEMES = (LIGHT, DARK)
# What the page makes of the values and the colours itself, or that is of no use in it.
_PAINTED = ("key", "bar", "palette")

_COST = mark("Values are kept as float16: they are {error} off at most in this layer.")
_MISSING = mark(
    "This page needs no network and no server. Other scales and colours, comparing, the kernel's "
    "walk, lenses and images of your own are in the app, which hookviz run starts."
)

_FIRST = call_words(ActivationKey(""))  # a page keeps what that one put out


@dataclass(frozen=True, slots=True)
class LayerBlocks:
    """Blocks of one layer.

    Attributes:
        name: the layer.
        texts: what is kept of it, by the block's name.
    """

    name: str
    texts: Mapping[str, str] = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes that they take in the page."""
        return sum(map(len, self.texts.values()))


def record_page(subject: Subject, layers: Sequence[LayerInfo], view: View) -> dict[str, str]:
    """Record what a page has of the network and the image as a whole.

    Args:
        subject: what the page is about; these layers are those that it offers.
        layers: which they are.
        view: what the page shows where its address says nothing; one that is inside of the whole
            network is of a page that keeps its map.

    Raises:
        HookVizError: the pass can't be run.
    """
    chosen = _CHOSEN if view.inside is None else _ON_MAP
    head, photograph = (answer(subject, View(), Question(name)) for name in ("head", "photograph"))
    of_layers = [answer_in_languages(subject, "layers", View(layer=each.name)) for each in layers]
    facts = {
        "names": [each.name for each in layers],
        "view": {word: text for word, text in view.link().items() if word in chosen},
        "fields": [each for each in client_fields() if each["word"] in chosen],
        "languages": [language_facts(each) for each in languages()],
        "sheets": {
            **client_sheets(),
            "alone": client_sheets()["alone"] + sheet(CLIENT / "in_file.css"),
        },
        "palettes": {name: palette_text(name) for theme in _THEMES for name in theme},
        "diverging": [theme.diverging for theme in _THEMES],
        "gap": GAP_LEVEL,
        "layers": columns([_layer_choices(each, subject) for each in of_layers]),
        "head": answer_in_languages(subject, "head"),
        "tree": answer_in_languages(subject, "tree"),
        "photograph": answer_in_languages(subject, "photograph"),
        **in_every_language(lambda: {"missing": say(_MISSING)}),
    }
    return {
        "page": packed(facts),
        "head": in_base64(head.data),
        "photograph": in_base64(photograph.data),
    }


def record_layers(
    subject: Subject,
    layers: Sequence[LayerInfo],
    sums: Collection[str] = (),
    progress: Progress = ignore,
) -> Iterator[LayerBlocks]:
    """Record all that a page has of each layer.

    Args:
        subject: as in `record_page`.
        layers: which are kept.
        sums: names of those of which the sum of any cell is kept.
        progress: called with the share done after each layer.

    Raises:
        HookVizError: the pass can't be run.
    """
    for at, layer in enumerate(layers):
        texts = dict(_layer(subject, View(layer=layer.name), at, has_sums=layer.name in sums))
        yield LayerBlocks(layer.name, texts)
        progress((at + 1) / len(layers))


def _layer(subject: Subject, view: View, at: int, *, has_sums: bool) -> Iterator[tuple[str, str]]:
    looked = resolve(subject, view)
    values = render(subject, view).maps.numpy()
    kept = halves(values)
    yield f"values-{at}", kept.text
    by_theme = [_tiles(replace(subject, colours=theme), view, kept.error) for theme in _THEMES]
    call = call_or_why_not(subject, looked)
    sums = call if has_sums and isinstance(call, LayerCall) else None
    upstream = upstream_of(subject, looked.layer) if isinstance(call, LayerCall) else None
    if all(each.name != upstream for each in subject.offered):
        upstream = None  # there is no way to it
    facts = {
        "tiles": varied(THEME, by_theme),
        "field": rounded(answer_in_languages(subject, "field", view)),
        "power": kept.power,
        "call": sums and in_every_language(lambda: call_facts(sums, upstream)),
    }
    if sums is not None:
        after = step_halves(sums)
        facts["call"]["powers"] = [each.power for each in after]
        for place, step in enumerate(after):
            yield f"step-{place}-{at}", step.text
        for name, text in call_numbers(sums).items():
            yield f"{name}-{at}", text
    yield f"layer-{at}", packed(facts)
    yield f"channels-{at}", packed(columns(_channels(subject, view, values)))
    if sums is None:
        strongest = [divmod(place, values.shape[2]) for place in by_theme[0]["strongest"]]
        yield f"cells-{at}", packed(columns(_cells(subject, looked, strongest, upstream)))
    if subject.atlas is not None and str(looked.step) in subject.atlas.layers:
        found = [_excites_answer(subject, view, channel) for channel in range(len(values))]
        yield f"excites-{at}", packed(columns(found))


def in_every_language(say_it: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is said in each language, as one."""
    facts: dict[str, Any] = varied(LANGUAGE, in_each_language(say_it))
    return facts


def _channels(subject: Subject, view: View, maps: NDArray[np.float32]) -> list[dict[str, Any]]:
    """Return what is said of each channel; its values and colours are known otherwise."""

    def say_it() -> dict[str, Any]:
        grid = render(subject, view).grid
        return {
            str(channel): channel_facts(grid, maps, channel, is_painted=False)
            for channel in range(len(maps))
        }

    return list(in_every_language(say_it).values())


def _cells(
    subject: Subject, looked: ResolvedView, cells: Sequence[tuple[int, int]], upstream: str | None
) -> list[dict[str, Any]]:
    """Return the sum of one cell of each channel, by row and column; or why there is none."""
    call = call_or_why_not(subject, looked)
    sums = (
        []
        if isinstance(call, str)
        else [explain(call, channel, *cell) for channel, cell in enumerate(cells)]
    )

    def say_it() -> dict[str, Any]:
        if not sums:
            said = unexplained(str(call_or_why_not(subject, looked)))
            return {str(channel): said for channel in range(len(cells))}
        return {str(each.channel): described(each, upstream, LIGHT.diverging) for each in sums}

    return [_as_kept(said) for said in in_every_language(say_it).values()]


def _as_kept(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a cell's sum as a page has it: with its own colours, and no kernel and no walk."""
    facts = {name: value for name, value in facts.items() if name != "colours"}
    if "rows" in facts:
        facts["rows"] = [
            row | {name: rounded(row[name], 4) for name in ("patch", "kernel")}
            for row in facts["rows"]
        ]
        for name in ("most", "patchMost", "kernelMost"):
            facts[name] = rounded(facts[name], 6)
    return facts | {"hasKernel": False, "canWalk": False}


def answer_in_languages(
    subject: Subject, question: str, view: View | None = None, **about: Any
) -> dict[str, Any]:
    """Answer a question in every language, as one."""
    asked = Question(question, about)
    return in_every_language(lambda: dict(answer(subject, view or View(), asked).facts))


def _tiles(subject: Subject, view: View, error: float) -> dict[str, Any]:
    """Return the answer about the tiles without what the page paints itself."""
    facts = answer_in_languages(subject, "tiles", view)
    facts = {name: value for name, value in facts.items() if name not in _PAINTED}
    facts["colormap"] = render(subject, view).own.colormap.name
    return facts | in_every_language(lambda: {"cost": say(_COST, error=number(error))})


def _layer_choices(facts: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """Return the answer about a layer with those choices alone that a page has."""
    has_patches = subject.atlas is not None and facts["step"] in subject.atlas.layers
    return facts | {
        "scales": facts["scales"][:1],
        "colourMaps": facts["colourMaps"][:1],
        "patches": None,
        "isUsual": has_patches,
        "isConv": has_patches and facts["isConv"],
    }


def _excites_answer(subject: Subject, view: View, channel: int) -> dict[str, Any]:
    """Return what excites a channel; its patches lead nowhere."""
    facts = answer_in_languages(subject, "excites", view, channel=channel)
    return facts | {"patches": [each | {"leads": None} for each in facts["patches"]]}


def language_facts(language: str) -> dict[str, Any]:
    """Return a language as a page has it: its name, its signs, and the words of the scripts."""
    words = client_words(language, "hookviz/explorer/client/")
    own = client_words(language, "hookviz/standalone/client/")["words"]
    return words | {"words": words["words"] | own, "name": own_name(language)}


def palette_text(name: str) -> str:
    """Return RGBA of each level of a colormap, in base64."""
    return in_base64(np.ascontiguousarray(palette_of(name)).tobytes())


def rounded(value: Any, digits: int = 7) -> Any:
    """Round every number in a JSON value to `digits` significant digits."""
    if isinstance(value, Mapping):
        return {key: rounded(each, digits) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each, digits) for each in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def record_whole(subject: Subject, names: Collection[str]) -> dict[str, str]:
    """Record the map of the whole network: blocks of a page by their names.

    Args:
        subject: what the page is about.
        names: layers of which the page has every channel; of the others it has the strongest ones,
            and where on the photograph a cell in their middle looks.

    Raises:
        HookVizError: the network runs no layer, or the pass can't be run.
    """
    subject = replace(subject, offered=())
    facts = answer_in_languages(subject, "whole")
    facts["network"] = deepcopy(facts["network"])  # which the subject keeps
    for part in _with_maps(facts["network"]):
        if part["layer"] not in names or part["output"] != _FIRST:
            part |= {"isKept": False, "sees": _seen_from_middle(subject, part)}
    blocks = {"whole": packed(facts)}
    if facts["sprite"] is not None:
        with Image.open(io.BytesIO(answer(subject, View(), Question("whole")).data)) as picture:
            blocks["small-maps"] = deflated(
                np.asarray(picture).tobytes()
            )  # in either theme's colours
    return blocks


def _with_maps(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "layer" in part:
        yield part
    for each in part.get("parts", ()):
        yield from _with_maps(each)


def _seen_from_middle(subject: Subject, part: dict[str, Any]) -> list[float] | None:
    """Return top, left, bottom and right of what the cell in the middle sees, as shares."""
    view = View(layer=part["layer"], layers="maps", output=part["output"])
    seen = answer(subject, view, Question("field")).facts
    if seen["rows"] and seen["columns"]:
        (top, bottom), (left, right) = (_middle(seen[name]) for name in ("rows", "columns"))
    elif seen["boxes"]:
        top, left, bottom, right = _middle(_middle(seen["boxes"]))
    else:
        return None
    return [round(edge, 4) for edge in (top, left, bottom, right)]


def _middle(each: list[Any]) -> Any:
    return each[len(each) // 2]
