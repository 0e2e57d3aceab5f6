"""Save the explorer of a capture as one HTML file, which opens without a server or a network."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from hookviz.atlas.atlas import Atlas
from hookviz.capturing import engine
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.errors import HookVizError, ImageError, SettingError, UnknownLayerError, shorten
from hookviz.explorer.client_files import LIGHT
from hookviz.explorer.subject import Subject, make_subject, model_of
from hookviz.explorer.view import ALL_OF_IT, View
from hookviz.images.reading import read
from hookviz.language.saying import joined, say
from hookviz.paths import path_ending_in, write_file
from hookviz.standalone.client_page import page_html
from hookviz.standalone.recording import LayerBlocks, record_layers, record_page, record_whole
from hookviz.types import Capture, LayerInfo, Progress, ignore
from hookviz.wording import byte_size

MOST_BYTES = 50_000_000
"""Bytes of a page, at most, unless more are asked for: what mail and chats still take."""

_SUFFIXES = (".html", ".htm")
_HOPELESS = 4  # times the bound: nobody waits for the rest of what is refused
_ROOM = 256 << 20  # bytes for what is drawn while a page is made, beside the activations


def save_page(
    capture: Capture,
    path: str | PathLike[str],
    *,
    image: Any = None,
    layers: str | Iterable[str] | None = None,
    sums: str | Iterable[str] = (),
    atlas: Atlas | None = None,
    whole_network: bool = False,
    most_bytes: int = MOST_BYTES,
    progress: Progress = ignore,
) -> Path:
    """Save a capture as one HTML file that shows it in the explorer, and return the path.

    A double click opens it, on a phone too, without a server and without a network. It has every
    channel of every captured layer with its numbers, where on the image each cell looks, the sum
    at each channel's strongest cell, and the likeliest classes, in every language and both themes.
    Values are kept as float16.

    Args:
        capture: from `capture`; the layers in it are those of the page.
        path: ends in ``.html``.
        image: the image that the capture was made of, as a file, bytes or Pillow image; without,
            the page shows what the network saw of it.
        layers: names of those to keep, where not all of the capture.
        sums: names of layers of which any cell's sum can be looked at, not the strongest's alone;
            the page keeps their inputs and weights.
        atlas: of this network, from `make_atlas`: what excites each channel most.
        whole_network: begin with a map of the whole network, in which each layer has its strongest
            channels, and those of the page all of theirs.
        most_bytes: a larger page is refused.
        progress: called with the share done; what it raises ends the run.

    Raises:
        HookVizError: the capture's model is gone, or the page would be too large; the message names
            layers to leave out.
        UnknownLayerError: a layer is not in the capture.
        SettingError: the path ends in something else, or can't be written.
        ImageError: the image can't be read, or is another one.

    >>> import tempfile
    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg", "stem.first.conv")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = hookviz.save_page(cap, f"{folder}/star.html")
    ...     path.read_text("utf-8")[:15]
    '<!doctype html>'
    """
    file = path_ending_in(path, _SUFFIXES, SettingError)
    subject = _subject(capture, image, atlas)
    shown = _layers(capture, subject, layers)
    view = View(inside=ALL_OF_IT) if whole_network else None
    page = page_bytes(subject, shown, sums, view=view, most_bytes=most_bytes, progress=progress)
    write_file(file, page, SettingError)
    return file


def page_bytes(
    subject: Subject,
    layers: Sequence[LayerInfo],
    sums: str | Iterable[str] = (),
    *,
    view: View | None = None,
    most_bytes: int = MOST_BYTES,
    progress: Progress = ignore,
) -> bytes:
    """Return the explorer of a subject as one HTML file, see `save_page`.

    Args:
        subject: what the page is about; what is pinned as A is left out.
        layers: what is kept, in order of execution.
        sums: names of those of which the sum of any cell is kept.
        view: what the page shows where its address says nothing: layer, channel, cell and order;
            where in the whole network it is, if the page is to keep its map.
        most_bytes: a larger page is refused.
        progress: called with the share done; what it raises ends the run.

    Raises:
        UnknownLayerError: a layer of `sums` is not among `layers`.
        HookVizError: the page would be too large, or a pass can't be run.
    """
    subject = replace(subject, offered=layers, pinned=None, colours=LIGHT)
    named = _check_layers(say("layer in this page"), {each.name for each in layers}, sums)
    view = view or View()
    whole = record_page(subject, layers, view)
    on_map = {} if view.inside is None else record_whole(subject, {each.name for each in layers})
    least, kept = sum(map(len, (whole | on_map).values())), list[LayerBlocks]()
    if on_map and least > most_bytes:
        raise _map_too_large(sum(map(len, on_map.values())), most_bytes)
    for each in record_layers(subject, layers, named, progress):
        kept.append(each)
        least += each.size
        if len(kept) < len(layers) and least > _HOPELESS * most_bytes:
            break
    first, *others = kept
    title = f"{subject.image_title} · {subject.model_title or subject.model.title}"
    rest = {name: text for each in others for name, text in each.texts.items()}
    page = page_html(title, whole | on_map | dict(first.texts), rest).encode()
    if len(page) > most_bytes:
        raise _too_large(len(page), most_bytes, kept, of_all=len(layers))
    return page


def room_for(capture: Capture) -> ByteCache:
    """Return a cache that has a capture, and room for what is drawn while its page is made."""
    room = _ROOM + 4 * sum(each.nbytes for each in capture.activations)
    cache = Budget(room).cache(room)
    engine.keep(capture, cache)
    return cache


def _subject(capture: Capture, image: Any, atlas: Atlas | None) -> Subject:
    """Return what a page is about, with all that was captured in its cache."""
    model = model_of(capture)
    if atlas is not None:
        atlas.check(model)
    subject = make_subject(model, capture.model_input, cache=room_for(capture))
    if image is not None:
        shown, crop = read(image), capture.model_input.crop
        if crop is None or crop.right > shown.width + 1 or crop.bottom > shown.height + 1:
            raise ImageError(
                say(
                    "{image} is {width}×{height} px, and is not what this capture was made of. "
                    "Give that image, or none.",
                    image=shown.name,
                    width=shown.width,
                    height=shown.height,
                )
            )
        subject = replace(
            subject,
            model_input=capture.model_input,
            image=shown,
            alt=shown.name,
            image_title=shown.name,
        )
    words = "" if atlas is None else say("among {count:,} images", count=atlas.counts["tallied"])
    return replace(subject, atlas=atlas, atlas_words=words)


def _layers(
    capture: Capture, subject: Subject, asked: str | Iterable[str] | None
) -> tuple[LayerInfo, ...]:
    """Return those layers of a capture that a page keeps, in order of execution."""
    names = {each.layer for each in capture.activations}
    if asked is not None:
        names = set(_check_layers(say("captured layer"), names, asked))
    trace = subject.trace
    convs = tuple(layer for layer in trace.convs if layer.name in names)
    maps = tuple(layer for layer in trace.shown if layer.name in names)
    if not maps:
        raise HookVizError(
            say("This capture of {model} has no layer that puts out maps.", model=capture.model)
        )
    return convs if len(convs) == len(maps) else maps


def _check_layers(kind: str, known: set[str], asked: str | Iterable[str]) -> Sequence[str]:
    """Return the layers that are asked for, all of which there are."""
    names = [asked] if isinstance(asked, str) else list(asked)
    for name in names:
        if name not in known:
            raise UnknownLayerError(kind, name, known)
    return names


def _map_too_large(size: int, most: int) -> HookVizError:
    return HookVizError(
        say(
            "The map of the whole network takes {size} alone, and the page may take {most} "
            "(most_bytes, --most-bytes). Without whole_network= or --whole-network it has none.",
            size=byte_size(size),
            most=byte_size(most),
        )
    )


def _too_large(size: int, most: int, layers: Sequence[LayerBlocks], of_all: int) -> HookVizError:
    """Say how large a page would be, and without which layers it is not: the largest first."""
    if len(layers) < of_all:
        return HookVizError(
            say(
                "The first {count} of {total} layers take {size} in a page, which may take {most} "
                "(most_bytes, --most-bytes): keep fewer by layers= or --layers.",
                count=len(layers),
                total=of_all,
                size=byte_size(size),
                most=byte_size(most),
            )
        )
    left, out = size, list[str]()
    for each in sorted(layers, key=lambda layer: -layer.size):
        if left <= most or len(out) == len(layers) - 1:
            break
        left -= each.size
        out.append(each.name)
    return HookVizError(
        say(
            "The page takes {size}, and may take {most} (most_bytes, --most-bytes). Without "
            "{layers} it takes {left}; layers= and --layers say which are kept.",
            size=byte_size(size),
            most=byte_size(most),
            layers=shorten(joined(out), 400) or layers[0].name,
            left=byte_size(left),
        )
    )
