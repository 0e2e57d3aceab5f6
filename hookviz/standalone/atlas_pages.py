"""Save an atlas as a folder of static pages: an index of layers, and a page for each of them.

The HTML is in English. A page has its sentences in every language, and its script shows those of
its reader's.
"""

import json
import shutil
from collections.abc import Iterator
from functools import cache
from html import escape
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

import numpy as np
from PIL.Image import Resampling

from hookviz.atlas.atlas import Atlas, LayerStatistics, TopActivation
from hookviz.drawing.pictures import encode_jpeg, fit_size, resize
from hookviz.errors import SettingError, shorten
from hookviz.explorer.excites import OF_CELLS
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.catalogs import languages, own_name
from hookviz.language.saying import mark, say
from hookviz.language.speaking import speaking
from hookviz.paths import path_of
from hookviz.standalone.client_page import CLIENT, in_each_language, page_head, page_script
from hookviz.types import Pixels, Progress, ignore
from hookviz.wording import number, percent

_ALL_LAYERS = mark("All layers")
_BACK, _ON = mark("← Previous layer"), mark("Next layer →")
_TITLE = mark("What excites each channel")
_MADE_OF = mark(
    "{model}, {weights} weights: {channels} channels of {layers} layers, each with what excites it "
    "most among {images} images, strongest first."
)
_CHANNELS = mark("{count} channels")
_CHANNEL = mark("Channel {channel}")
_FIRST_PATCHES = mark("The strongest patches of some channels")
_EACH_PATCH = mark(
    "Each patch is what the channel's strongest cell sees of the image, with its value."
)
_PATCH = mark("{image}: {excitation} at row {row}, column {column}")
_LOST = mark("no patch")
_SILENT = mark("No image excites it.")
_FACTS = mark(
    "Mean maximum {mean}, zero in {zeros}, the strongest of its layer for {strongest} of images"
)
_TO_CHANNEL = mark("To channel")
_LIGHT, _DARK, _LANGUAGE = mark("Light"), mark("Dark"), mark("Language")

_SCRIPT = "in_folder.js"
_GENERATOR = "HookViz atlas"
"""What the pages say made them, by which a folder of them is known."""

_STRIP = 6  # channels in a layer's picture on the index
_JUMP = 64  # channels from one link into a page to the next
_GREY = 128  # around a patch that is no square
_BLOCK = 16  # pixels that JPEG compresses together


def _element(tag: str, text: str, attributes: str = "", **facts: str) -> str:
    """Return an element that says a sentence in its reader's language, with its facts.

    Args:
        tag: of the element.
        text: one of the sentences above.
        attributes: others, as HTML.
        facts: what stands for ``{name}`` in it.
    """
    return f"<{tag}{_client_text(text, facts)}{attributes}>{escape(text.format(**facts))}</{tag}>"


def _attribute(attribute: str, text: str, **facts: str) -> str:
    """Return an attribute, such as ``alt``, that says a sentence in its reader's language."""
    words = escape(text.format(**facts))
    return f'{_client_text(text, facts)} data-to="{attribute}" {attribute}="{words}"'


def _client_text(text: str, facts: dict[str, str]) -> str:
    with_facts = f' data-facts="{escape(json.dumps(facts, ensure_ascii=False))}"' if facts else ""
    return f' data-say="{escape(text)}"{with_facts}'


def _head(title: str, rules: str = "") -> str:
    """Return how a page begins, up to its body; `rules` are CSS beside that of every page."""
    style = (CLIENT / "in_folder.css").read_text("utf-8") + rules
    images = "'self' file: data:"
    return page_head(title, style, page_script(_SCRIPT), images=images, generator=_GENERATOR)


def _foot() -> str:
    """Return how a page ends: its sentences in every language, and its script."""
    return (
        f'<script type="application/json" id="languages">{_languages()}</script>\n'
        f"<script>{page_script(_SCRIPT)}</script>\n</body>\n</html>\n"
    )


@cache
def _languages() -> str:
    """Return every language with its sentences, as JSON that ends no element early."""
    words = in_each_language(lambda: {text: say(text) for text in _SENTENCES})
    spoken = [
        {
            "language": language.replace("_", "-"),
            "name": own_name(language),
            "words": {text: own for text, own in said.items() if own != text},
        }
        for language, said in zip(languages(), words, strict=True)
    ]
    return json.dumps(spoken, ensure_ascii=False).replace("<", "\\u003c")


_SENTENCES = (
    *(_ALL_LAYERS, _BACK, _ON, _TITLE, _MADE_OF, _CHANNELS, _CHANNEL, _FIRST_PATCHES),
    *(_EACH_PATCH, _PATCH, OF_CELLS, _LOST, _SILENT, _FACTS, _TO_CHANNEL),
    *(_LIGHT, _DARK, _LANGUAGE),
)


def save_atlas_pages(
    atlas: Atlas,
    folder: str | PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress = ignore,
) -> Path:
    """Save an atlas as a folder of static pages, and return the folder.

    ``index.html`` lists the layers, and each has a page with every channel's strongest patches,
    their values and where they are from. A double click opens it, on a phone too, without a server
    and without a network; any web server can show it. Pages are in the reader's language, light or
    dark. A channel's patches are one file, so that a page loads what is looked at, and one channel
    is in memory at a time while they are made.

    Args:
        atlas: from `make_atlas` or `load_atlas`.
        folder: is made; it is there once it is whole, and nothing of it where the run ends early.
        overwrite: put the pages in the place of older ones.
        progress: called with the share done; what it raises ends the run.

    Raises:
        SettingError: the folder is there already, and `overwrite` was not given or it has something
            else than such pages; or it can't be written.
        HookVizError: the atlas's patches can't be read any more.

    >>> import tempfile
    >>> model = hookviz.load_model("shapesnet")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = hookviz.make_atlas(
    ...         model, "assets/samples/star.jpg", f"{folder}/a.atlas", layers=["stem.first.conv"]
    ...     )
    ...     pages = hookviz.save_atlas_pages(atlas, f"{folder}/pages")
    ...     sorted(each.name for each in pages.iterdir())
    ['index.html', 'layers']
    """
    whole = path_of(folder).absolute()
    _check(whole, overwrite=overwrite)
    reporter = ProgressReporter(progress, sum(atlas.layers.values()))
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(prefix=f".{whole.name}.", dir=whole.parent))
        try:
            with speaking("en"):  # what the pages' script translates
                _write(atlas, part, reporter)
            part.chmod(0o755)  # a web server may be somebody else
            if whole.exists():
                shutil.rmtree(whole)
            part.replace(whole)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    except OSError as error:
        raise SettingError(
            say(
                "{file!r} can't be written: {reason}.",
                file=shorten(str(whole), 200),
                reason=error.strerror or type(error).__name__,
            )
        ) from error
    return whole


def _check(folder: Path, *, overwrite: bool) -> None:
    """Check that nothing but older pages would be lost.

    Raises:
        SettingError: something would.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not _is_ours(folder):
        raise SettingError(
            say(
                "{folder!r} is there already, and is no folder of an atlas's pages: name another.",
                folder=shorten(str(folder), 200),
            )
        )
    if not overwrite:
        raise SettingError(
            say(
                "{folder!r} has an atlas's pages already: overwrite= and --overwrite put others in "
                "their place.",
                folder=shorten(str(folder), 200),
            )
        )


def _is_ours(folder: Path) -> bool:
    try:
        with (folder / "index.html").open(encoding="utf-8", errors="replace") as file:
            return f'content="{_GENERATOR}"' in file.read(100_000)
    except OSError:
        return False


def _write(atlas: Atlas, folder: Path, reporter: ProgressReporter) -> None:
    layers = list(atlas.layers)
    width = len(str(len(layers) - 1))
    names = [f"{at:0{width}}" for at in range(len(layers))]  # an address is no file's name
    (folder / "layers").mkdir()
    for at, layer in enumerate(layers):
        place = folder / "layers" / names[at]
        place.mkdir()
        (place / "strip.jpg").write_bytes(_strip(atlas, layer))
        around = [
            (label, names[other])
            for label, other in ((_BACK, at - 1), (_ON, at + 1))
            if 0 <= other < len(layers)
        ]
        with (folder / "layers" / f"{names[at]}.html").open("w", encoding="utf-8") as file:
            for text in _layer_page(atlas, layer, place, around, reporter):
                file.write(text)
    (folder / "index.html").write_text("".join(_index(atlas, names)), encoding="utf-8")


def _index(atlas: Atlas, names: list[str]) -> Iterator[str]:
    """Yield the page that lists the layers."""
    yield _head(f"{atlas.title}: {_TITLE}")
    yield f'<header>{_element("h1", _TITLE)}<div class="tools"></div></header>\n<main>\n'
    yield _element(
        "p",
        _MADE_OF,
        model=atlas.title,
        weights=atlas.weights,
        channels=f"{sum(atlas.layers.values()):,}",
        layers=f"{len(atlas.layers):,}",
        images=f"{atlas.counts['tallied']:,}",
    )
    yield '\n<ol class="layers">\n'
    for name, (layer, count) in zip(names, atlas.layers.items(), strict=True):
        yield f'<li><a href="layers/{name}.html"><strong>{escape(layer)}</strong>'
        yield _element("span", _CHANNELS, count=f"{count:,}")
        alt = _attribute("alt", _FIRST_PATCHES)
        yield f'<img src="layers/{name}/strip.jpg" loading="lazy" {alt}></a></li>\n'
    yield f"</ol>\n</main>\n{_foot()}"


def _layer_page(
    atlas: Atlas,
    layer: str,
    place: Path,
    around: list[tuple[str, str]],
    reporter: ProgressReporter,
) -> Iterator[str]:
    """Yield a layer's page, and write its channels' pictures into a folder beside it."""
    count, statistics = atlas.layers[layer], atlas.statistics(layer)
    yield _head(f"{layer} · {atlas.title}", _places(atlas.top, int(atlas.options["patch"])))
    yield f"<header><h1>{escape(layer)}</h1><nav>"
    yield _element("a", _ALL_LAYERS, ' href="../index.html"')
    for label, name in around:
        yield _element("a", label, f' href="{name}.html"')
    yield '</nav><div class="tools"></div></header>\n<main>\n'
    yield _element("p", OF_CELLS if layer in atlas.of_cells else _EACH_PATCH)
    if count > _JUMP:
        yield f'\n<nav class="jumps" {_attribute("aria-label", _TO_CHANNEL)}>'
        yield _element("span", _TO_CHANNEL)
        for channel in range(0, count, _JUMP):
            yield f' <a href="#channel-{channel}">{channel}</a>'
        yield "</nav>"
    yield '\n<ol class="channels">\n'
    for channel in range(count):
        yield from _channel(atlas, layer, channel, statistics, place)
        reporter.step()
    yield f"</ol>\n</main>\n{_foot()}"


def _channel(
    atlas: Atlas, layer: str, channel: int, statistics: LayerStatistics, place: Path
) -> Iterator[str]:
    """Yield a channel's part of a page, and write its patches as one picture."""
    best = atlas.top_activations(layer, channel)
    yield f'<li id="channel-{channel}"><div><h2>'
    yield _element("a", _CHANNEL, f' href="#channel-{channel}"', channel=str(channel))
    yield "</h2>"
    yield _element(
        "p",
        _FACTS,
        ' class="facts"',
        mean=number(float(statistics.mean_maximum[channel])),
        zeros=percent(float(statistics.zeros[channel])),
        strongest=percent(float(statistics.strongest[channel])),
    )
    yield "</div>"
    if not best:
        yield f"{_element('p', _SILENT)}</li>\n"
        return
    side = int(atlas.options["patch"])
    picture = _row([each.patch for each in best], side)
    (place / f"{channel}.jpg").write_bytes(encode_jpeg(picture, quality=90))
    source = f"{quote(place.name)}/{channel}.jpg"
    yield '<ul class="patches">'
    for rank, each in enumerate(best):
        yield f"<li>{_patch(each, source, rank, side)}<span>{number(each.value)}</span></li>"
    yield "</ul></li>\n"


def _patch(best: TopActivation, source: str, rank: int, side: int) -> str:
    """Return a patch as HTML: a part of the channel's picture, with its own words."""
    if best.patch is None:
        return _element("span", _LOST, ' class="none"')
    words = _attribute(
        "alt",
        _PATCH,
        image=best.image.name,
        excitation=number(best.value),
        row=str(best.cell[0]),
        column=str(best.cell[1]),
    )
    return (
        f'<img class="p{rank}" src="{source}" width="{side}" height="{side}" loading="lazy" '
        f"{words}>"
    )


def _places(top: int, side: int) -> str:
    """Return the CSS by which each patch is cut out of its channel's picture."""
    step = _step(side)
    places = (f".p{rank} {{ object-position: {-rank * step}px 0; }}\n" for rank in range(top))
    return f".none {{ width: {side}px; height: {side}px; }}\n{''.join(places)}"


def _step(side: int) -> int:
    """Return the pixels from one patch to the next: no JPEG block has parts of two."""
    return -(-side // _BLOCK) * _BLOCK


def _strip(atlas: Atlas, layer: str) -> bytes:
    """Return the strongest patch of some of a layer's channels, evenly spread, as one picture."""
    count = atlas.layers[layer]
    channels = np.unique(np.linspace(0, count - 1, min(count, _STRIP)).round().astype(int))
    patches = [
        next((each.patch for each in atlas.top_activations(layer, int(channel))), None)
        for channel in channels
    ]
    return encode_jpeg(_row(patches, int(atlas.options["patch"])), quality=85)


def _row(patches: list[Pixels | None], side: int) -> Pixels:
    """Draw patches side by side, each in the middle of a square, ``(side, n × step, 3)``."""
    step = _step(side)
    row = np.full((side, step * len(patches), 3), _GREY, np.uint8)
    for at, patch in enumerate(patches):
        if patch is None:
            continue
        size = fit_size(patch, side)
        is_small = max(patch.shape[:2]) < side  # its pixels are shown as they are
        shown = resize(patch, size, Resampling.NEAREST if is_small else Resampling.BICUBIC)
        top, left = (side - size[0]) // 2, at * step + (side - size[1]) // 2
        row[top : top + size[0], left : left + size[1]] = shown
    return row
