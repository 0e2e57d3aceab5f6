"""Answer with the tiles: every channel in one picture, with their layout, colours and numbers.

The picture has them in the layer's own order. The answer lists every other order, so that the
client asks no question for another order or for fewer channels. For a pair it has the pictures and
the classes of both sides.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, channel_facts, geometry_facts, tile_facts
from hookviz.drawing.pair import Pair, why_unlike
from hookviz.drawing.pictures import small_png
from hookviz.drawing.statistics import SORTS, order, strongest_cells
from hookviz.errors import HookVizError
from hookviz.explorer.excites import OF_CELLS, PatchTiles, atlas_of_step, patch_tiles
from hookviz.explorer.glossary import emphasised, explained, plainly
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.rendering import RenderedGrid, RenderedPair, differences_from_a, render, tops
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import ALL, CHANGE, DIFFERENCE, SPLIT, View
from hookviz.language.saying import mark, say, sentences
from hookviz.language.speaking import current
from hookviz.markup import data_url
from hookviz.types import Capture

_SIDE_PX = 72  # twice its size on the screen
_CLASSES = 2


def describe_pair(subject: Subject, capture: Capture) -> list[dict[str, Any]]:
    """Return the pictures that the network saw as A and as B, each with its likeliest classes.

    Args:
        subject: with A pinned; nothing is returned without.
        capture: the run of B.
    """
    pinned = subject.pinned
    if pinned is None or pinned.run is None:
        return []
    key = ("seen-of-a", pinned.link, pinned.digest, current())
    a: dict[str, Any] | None = subject.cache.get(key)
    if a is None:
        try:
            a = _describe_side("A", pinned.run())
        except HookVizError:  # which is said where its maps are asked for
            return []
        subject.cache.put(key, a, len(str(a)))
    return [a, _describe_side("B", capture)]


def _describe_side(name: str, capture: Capture) -> dict[str, Any]:
    """Describe one side; its picture is empty where the network's input is none."""
    picture = capture.model_input.picture
    small = "" if picture is None else data_url(small_png(picture, _SIDE_PX))
    return {
        "name": name,
        "picture": small,
        "classes": [f"{each.name} {each.text}" for each in capture.top(_CLASSES)],
    }


_FACES = {"A": "a", "B": "b", SPLIT: "split"}
_OF_PATCHES = mark("Each tile is what excites its channel most among the atlas's images.")


def answer_tiles(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return every channel that a view shows; the picture is the sprite, a pixel for a cell.

    Raises:
        HookVizError: the network shows no channels, or the pass can't be run.
    """
    rendered = render(subject, view)
    grid, pair = _tiles(rendered)
    patches, notes = _patches(subject, view, rendered), []
    # patches of a class or of an image have an order of their own
    has_own_order = patches is not None and patches.grid is not rendered.own
    orders = None if has_own_order else _orders(rendered, grid)
    sprite, legend = pair.sprite if pair else grid.sprite, grid.legend
    if patches is not None:
        grid, sprite = patches.grid, patches.sheet.png
        notes = [patches.note] if patches.note else []
        is_of_cells = subject.atlas is not None and grid.title in subject.atlas.of_cells
        legend = sentences(say(_OF_PATCHES), say(OF_CELLS) if is_of_cells else "")
    face = _FACES.get(rendered.compared.shown, "b") if rendered.compared else "b"
    facts = tile_facts(grid, _says(subject, grid), sprite) | {
        "legend": explained(legend),
        "orders": orders,
        "shown": _how_many(grid, tops(grid.shape[0]) if orders else (ALL,)),
        "isPatches": patches is not None,
        "notes": notes,
        "pair": pair and {"face": face, "stats": channel_facts(pair.a)},
        "compare": _compare(subject, rendered),
        "isDifference": rendered.compared is not None and rendered.compared.shown == DIFFERENCE,
        "isOfA": rendered.is_of_a,
        "strongest": strongest_cells(_maps(rendered)).tolist(),
        "rows": grid.shape[1],
        "columns": grid.shape[2],
    }
    if patches is not None:  # whose colours are no values
        facts |= {"geometry": geometry_facts(patches.sheet.geometry), "palette": []}
    facts["cost"] = _cost(subject, rendered.capture, time.perf_counter() - rendered.began)
    return Answer(facts, sprite)


def _tiles(rendered: RenderedGrid) -> tuple[Grid, Pair | None]:
    """Return the grid of the tiles, and the pair where they are of both."""
    if rendered.compared is None:
        return rendered.own, None
    pair = rendered.compared.pair
    if rendered.compared.shown == DIFFERENCE and pair.difference is not None:
        return pair.difference, None
    return (pair.a if rendered.is_of_a else pair.b), (pair if pair.alike else None)


def _maps(rendered: RenderedGrid) -> NDArray[np.float32]:
    """Return the maps of the channels on the tiles: of a pair those of B."""
    compared = rendered.compared
    return compared.maps.a if compared is not None and rendered.is_of_a else rendered.maps.numpy()


def _patches(subject: Subject, view: View, rendered: RenderedGrid) -> PatchTiles | None:
    """Return the strongest patch of each channel, where the view asks for it; not of a pair."""
    atlas = atlas_of_step(subject, rendered.own.title) if view.patches else None
    if atlas is None or rendered.compared is not None:
        return None
    return patch_tiles(subject, atlas, rendered.own, rendered.maps.numpy(), view.answers)


def _says(subject: Subject, grid: Grid) -> str:
    """Return the description of the picture for screen readers."""
    return say(
        "{channels} of layer {layer} for: {alt}. {legend}",
        channels=grid.shown,
        layer=grid.title,
        alt=subject.alt,
        legend=grid.legend,
    )


def _orders(rendered: RenderedGrid, grid: Grid) -> dict[str, list[int]]:
    """Return the layer's channels in each order but its own: of a pair by B's values."""
    stats = grid.stats if rendered.is_of_a else rendered.grid.stats
    orders = {sort: order(stats, sort).tolist() for sort in SORTS if sort != "index"}
    if rendered.compared is not None and rendered.compared.pair.alike:
        orders[CHANGE] = rendered.compared.maps.channels.most_changed.tolist()
    return orders


def _how_many(grid: Grid, counts: tuple[str, ...]) -> dict[str, str]:
    """Return the sentence about the channels shown, by each of the counts to choose from."""
    sentence_of = {}
    for count in counts:
        of = grid if count == ALL else replace(grid, order=grid.order[: int(count)])
        sentence_of[count] = say("{meaning}.", meaning=f"{of.shown[0].upper()}{of.shown[1:]}")
    return sentence_of


def _compare(subject: Subject, rendered: RenderedGrid) -> dict[str, Any] | None:
    """Describe the row about A and B, and which of the two is shown; None without A."""
    if subject.pinned is None:
        return None
    compared = rendered.compared
    row = {"options": [], "chosen": "", "says": {}, "alike": False, "hint": "", "seen": []}
    if compared is None:
        return row | {"warning": rendered.warning}
    alike = compared.pair.alike
    return row | {
        "options": [{"value": each, "says": say(each)} for each in compared.maps.choices],
        "chosen": compared.shown,
        "says": _sides(subject, rendered, compared),
        "alike": alike,
        "seen": describe_pair(subject, rendered.capture),
        "hint": say("Hold F to flip between the two.") if alike else "",
        "warning": "",
    }


def _sides(subject: Subject, rendered: RenderedGrid, compared: RenderedPair) -> dict[str, Any]:
    """Describe A, and the settings in which B differs."""
    pinned, both = compared.maps.pinned, compared.maps
    of_a = (pinned.image, pinned.title, pinned.step)
    others = differences_from_a(subject, str(rendered.resolved.step))
    if not others:
        same = say(
            "**A** is what you look at: choose another image, model or layer, and that is B."
        )
        return {"same": plainly(same), "parts": emphasised(same)}
    more = "" if both.alike else why_unlike(both.a.shape, both.b.shape)
    return {"a": " · ".join(of_a), "b": " · ".join(others), "more": more}


def _cost(subject: Subject, capture: Capture, seconds: float) -> str:
    """Return the cost of the tiles in time and memory, in words."""
    how = say("one forward pass") if capture.forward_passes else say("from this session's cache")
    return say(
        "{origin} {capture_ms:.0f} ms · drawn in {drawing_ms:.0f} ms · {used:.0f} of "
        "{limit:.0f} MB kept",
        origin=how,
        capture_ms=capture.seconds * 1000,
        drawing_ms=seconds * 1000,
        used=subject.cache.used / 1e6,
        limit=subject.cache.limit / 1e6,
    )
