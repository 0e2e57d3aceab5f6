"""Ask beforehand all that a page can be asked, in every language, light and dark.

What comes of it are the page's blocks: texts in base64 by their names, each of which the page
unpacks when it is looked at.
"""

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hookviz.drawing.colormaps import GAP_LEVEL
from hookviz.drawing.palette import palette_of
from hookviz.errors import ModelError, SettingError
from hookviz.explorer.answering import answer
from hookviz.explorer.client_facts import (
    DARK,
    LIGHT,
    client_fields,
    client_sheets,
    client_words,
)
from hookviz.explorer.client_files import sheet
from hookviz.explorer.drawn import drawn
from hookviz.explorer.layers import resolve
from hookviz.explorer.origin import layer_call, upstream_of
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.catalogs import languages, own_name
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.standalone.any_cell import call_facts, call_numbers, followed
from hookviz.standalone.client_page import CLIENT
from hookviz.standalone.packing import (
    LANGUAGE,
    THEME,
    columns,
    halves,
    packed,
    varied,
)
from hookviz.types import LayerInfo, Progress, ignore
from hookviz.wording import number

_CHOSEN = ("layer", "channel", "cell", "sort", "top")  # all that a page offers of a view
_THEMES = (LIGHT, DARK)
# What the page makes of the values and the colours itself, or that is of no use in it.
_PAINTED = ("key", "bar", "palette")
_OF_CHANNEL = ("picture", "values", "bar", "colours")


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


def record_page(subject: Subject, layers: Sequence[LayerInfo]) -> dict[str, str]:
    """Record what a page has of the network and the image as a whole.

    Args:
        subject: what the page is about; these layers are those that it offers.
        layers: which they are.

    Raises:
        HookVizError: the pass can't be run.
    """
    head, photograph = (answer(subject, View(), Question(name)) for name in ("head", "photograph"))
    of_layers = [_spoken(subject, "layers", View(layer=each.name)) for each in layers]
    facts = {
        "names": [each.name for each in layers],
        "fields": [each for each in client_fields() if each["word"] in _CHOSEN],
        "languages": [_language(each) for each in languages()],
        "sheets": {
            **client_sheets(),
            "alone": client_sheets()["alone"] + sheet(CLIENT / "in_file.css"),
        },
        "palettes": {name: _palette(name) for theme in _THEMES for name in theme},
        "diverging": [theme.diverging for theme in _THEMES],
        "gap": GAP_LEVEL,
        "layers": columns([_layer_choices(each, subject) for each in of_layers]),
        "head": _spoken(subject, "head"),
        "tree": _spoken(subject, "tree"),
        "photograph": _spoken(subject, "photograph"),
        "missing": varied(LANGUAGE, [_missing(language) for language in languages()]),
    }
    return {
        "page": packed(facts),
        "head": base64.b64encode(head.data).decode("ascii"),
        "photograph": base64.b64encode(photograph.data).decode("ascii"),
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
    values = drawn(subject, view).maps.numpy()
    kept = halves(values)
    yield f"values-{at}", kept.text
    by_theme = [_tiles(replace(subject, colours=theme), view, kept.error) for theme in _THEMES]
    call = _call(subject, view) if has_sums else None
    tiles = varied(THEME, by_theme)
    yield (
        f"layer-{at}",
        packed(
            {
                "tiles": tiles,
                "field": _rounded(_spoken(subject, "field", view)),
                "power": kept.power,
                "call": call and call["facts"],
            }
        ),
    )
    channels = range(len(values))
    of_channels = [
        {
            name: value
            for name, value in _spoken(subject, "channel", view, channel=channel).items()
            if name not in _OF_CHANNEL
        }
        for channel in channels
    ]
    yield f"channels-{at}", packed(columns(of_channels))
    if call is not None:
        for name, text in call["texts"].items():
            yield f"{name}-{at}", text
    else:
        cells = [divmod(place, values.shape[2]) for place in by_theme[0]["strongest"]]
        of_cells = [
            _cell(subject, view, channel=channel, row=row, column=column)
            for channel, (row, column) in zip(channels, cells, strict=True)
        ]
        yield f"cells-{at}", packed(columns(of_cells))
    if subject.atlas is not None and str(resolve(subject, view).step) in subject.atlas.layers:
        found = [_excites(subject, view, channel) for channel in channels]
        yield f"excites-{at}", packed(columns(found))


def _spoken(
    subject: Subject, question: str, view: View | None = None, **about: Any
) -> dict[str, Any]:
    """Return the answer to a question in every language."""
    said = []
    for language in languages():
        with speaking(language):
            said.append(dict(answer(subject, view or View(), Question(question, about)).facts))
    facts: dict[str, Any] = varied(LANGUAGE, said)
    return facts


def _tiles(subject: Subject, view: View, error: float) -> dict[str, Any]:
    """Return the answer about the tiles without what the page paints itself."""
    facts = _spoken(subject, "tiles", view)
    facts = {name: value for name, value in facts.items() if name not in _PAINTED}
    facts["colormap"] = drawn(subject, view).own.colormap.name
    facts["cost"] = varied(LANGUAGE, [_kept(language, error) for language in languages()])
    return facts


def _kept(language: str, error: float) -> str:
    with speaking(language):
        return say(
            "Values are kept as float16: they are {error} off at most in this layer.",
            error=number(error),
        )


def _layer_choices(facts: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """Return the answer about a layer with those choices alone that a page has."""
    return facts | {
        "scales": facts["scales"][:1],
        "colourMaps": facts["colourMaps"][:1],
        "patches": None,
        "isConv": subject.atlas is not None and facts["step"] in subject.atlas.layers,
    }


def _cell(subject: Subject, view: View, **place: int) -> dict[str, Any]:
    """Return the sum of a cell without the ways to the kernel and its walk, which no page has."""
    facts = _spoken(subject, "cell", view, **place)
    facts = {name: value for name, value in facts.items() if name != "colours"}
    if "rows" in facts:
        facts["rows"] = [
            row | {name: _rounded(row[name], 4) for name in ("patch", "kernel")}
            for row in facts["rows"]
        ]
    return _rounded(facts, 6) | {"hasKernel": False, "canWalk": False}


def _excites(subject: Subject, view: View, channel: int) -> dict[str, Any]:
    """Return what excites a channel; its patches lead nowhere."""
    facts = _spoken(subject, "excites", view, channel=channel)
    return facts | {"patches": [each | {"leads": None} for each in facts["patches"]]}


def _call(subject: Subject, view: View) -> dict[str, Any] | None:
    """Return what any sum of a layer needs; None of a layer that is no such sum, which says so."""
    looked = resolve(subject, view)
    try:
        call = layer_call(subject, looked)
    except (SettingError, ModelError):
        return None
    upstream, after = upstream_of(subject, looked.layer), followed(call)
    said = []
    for language in languages():
        with speaking(language):
            said.append(call_facts(call, upstream))
    facts = varied(LANGUAGE, said) | {"powers": [each.power for each in after]}
    steps = {f"step-{number}": each.text for number, each in enumerate(after)}
    return {"facts": facts, "texts": call_numbers(call) | steps}


def _missing(language: str) -> str:
    with speaking(language):
        return say(
            "This page needs no network and no server. Other scales and colours, comparing, the "
            "kernel's walk, lenses and images of your own are in the app, which hookviz run starts."
        )


def _language(language: str) -> dict[str, Any]:
    words = client_words(language, "hookviz/explorer/client/")
    own = client_words(language, "hookviz/standalone/client/")["words"]
    return words | {"words": words["words"] | own, "name": own_name(language)}


def _palette(name: str) -> str:
    return base64.b64encode(np.ascontiguousarray(palette_of(name)).tobytes()).decode("ascii")


def _rounded(value: Any, digits: int = 7) -> Any:
    """Return facts with so many digits of each number."""
    if isinstance(value, Mapping):
        return {key: _rounded(each, digits) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each, digits) for each in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
