"""Answer with the tiles: every channel in one picture, with what lays, colours and reads them.

The picture has them in the layer's own order. The answer says each other order that a view may ask
for, so that nobody is asked again where it asks for another one, or for fewer channels. Of a pair
it has the picture and the classes of either side.
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
from hookviz.explorer.drawn import Compared, Drawn, drawn
from hookviz.explorer.excites import OF_CELLS, PatchTiles, atlas_of_step, patch_tiles
from hookviz.explorer.glossary import emphasised, explained, plainly
from hookviz.explorer.look import tops
from hookviz.explorer.pair import of_b_alone
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import ALL, CHANGE, DIFFERENCE, SPLIT, View
from hookviz.language.saying import mark, say, sentences
from hookviz.language.speaking import current
from hookviz.markup import data_url
from hookviz.types import Capture

_SIDE = 72  # pixels, twice what it takes on the screen
_CLASSES = 2


def both_seen(subject: Subject, capture: Capture) -> list[dict[str, Any]]:
    """Return of A, which is pinned, and of B what the network saw and took it for.

    Args:
        subject: what is looked at.
        capture: the run of B.
    """
    pinned = subject.pinned
    if pinned is None or pinned.run is None:
        return []
    key = ("seen-of-a", pinned.link, pinned.digest, current())
    a: dict[str, Any] | None = subject.cache.get(key)
    if a is None:
        try:
            a = _seen("A", pinned.run())
        except HookVizError:  # which is said where its maps are asked for
            return []
        subject.cache.put(key, a, len(str(a)))
    return [a, _seen("B", capture)]


def _seen(name: str, capture: Capture) -> dict[str, Any]:
    """Describe one side; its picture is empty where the network's input is none."""
    picture = capture.model_input.picture
    small = "" if picture is None else data_url(small_png(picture, _SIDE))
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
    """Return every channel of what a view shows; the picture is the sprite, a pixel for a cell.

    Raises:
        HookVizError: the network shows no channels, or the pass can't be run.
    """
    shown = drawn(subject, view)
    grid, pair = _tiles(shown)
    patches, notes = _patches(subject, view, shown), []
    orders = None if _is_ordered(patches, shown) else _orders(shown, grid)
    sprite = pair.sprite if pair else grid.sprite
    if patches is not None:
        grid, sprite = patches.grid, patches.sheet.png
        notes = [patches.note] if patches.note else []
    facts = tile_facts(grid, _says(subject, grid), sprite) | {
        "legend": explained(_of_patches(subject, grid.title) if patches else grid.legend),
        "orders": orders,
        "shown": _how_many(grid, tops(grid.shape[0]) if orders else (ALL,)),
        "isPatches": patches is not None,
        "notes": notes,
        "pair": pair and {"face": _face(shown.compared), "stats": channel_facts(pair.a)},
        "compare": _compare(subject, shown),
        "isDifference": shown.compared is not None and shown.compared.shown == DIFFERENCE,
        "isOfA": shown.is_of_a,
        "strongest": strongest_cells(_maps(shown)).tolist(),
        "rows": grid.shape[1],
        "columns": grid.shape[2],
    }
    if patches is not None:  # whose colours are no values
        facts |= {"geometry": geometry_facts(patches.sheet.geometry), "palette": []}
    facts["cost"] = _cost(subject, shown.capture, time.perf_counter() - shown.began)
    return Answer(facts, sprite)


def _tiles(shown: Drawn) -> tuple[Grid, Pair | None]:
    """Return what the tiles are of, and the pair where they are of both."""
    if shown.compared is None:
        return shown.own, None
    pair = shown.compared.pair
    if shown.compared.shown == DIFFERENCE and pair.difference is not None:
        return pair.difference, None
    return (pair.a if shown.is_of_a else pair.b), (pair if pair.alike else None)


def _maps(shown: Drawn) -> NDArray[np.float32]:
    """Return the maps of the channels that are picked from the tiles: of a pair those of B."""
    compared = shown.compared
    return compared.maps.a if compared is not None and shown.is_of_a else shown.maps.numpy()


def _face(compared: Compared | None) -> str:
    return _FACES.get(compared.shown, "b") if compared is not None else "b"


def _patches(subject: Subject, view: View, shown: Drawn) -> PatchTiles | None:
    """Return what excites each channel, where that is asked for and known; not of a pair."""
    atlas = atlas_of_step(subject, shown.own.title) if view.patches else None
    if atlas is None or shown.compared is not None:
        return None
    return patch_tiles(subject, atlas, shown.own, shown.maps.numpy(), view.answers)


def _of_patches(subject: Subject, step: str) -> str:
    """Say what the tiles are where each is a patch."""
    is_of_cells = subject.atlas is not None and step in subject.atlas.of_cells
    return sentences(say(_OF_PATCHES), say(OF_CELLS) if is_of_cells else "")


def _says(subject: Subject, grid: Grid) -> str:
    """Say what the picture shows, for who can't see it."""
    return say(
        "{channels} of layer {layer} for: {alt}. {legend}",
        channels=grid.shown,
        layer=grid.title,
        alt=subject.alt,
        legend=grid.legend,
    )


def _is_ordered(patches: PatchTiles | None, shown: Drawn) -> bool:
    """Return whether the tiles have an order of their own: those that answer to a choice."""
    return patches is not None and patches.grid is not shown.own


def _orders(shown: Drawn, grid: Grid) -> dict[str, list[int]]:
    """Return the layer's channels in each order but its own: of a pair by B's values."""
    stats = grid.stats if shown.is_of_a else shown.grid.stats
    orders = {sort: order(stats, sort).tolist() for sort in SORTS if sort != "index"}
    if shown.compared is not None and shown.compared.pair.alike:
        orders[CHANGE] = shown.compared.maps.channels.most_changed.tolist()
    return orders


def _how_many(grid: Grid, counts: tuple[str, ...]) -> dict[str, str]:
    """Say how many channels are shown where the first so many are, or all of the grid."""
    said = {}
    for count in counts:
        of = grid if count == ALL else replace(grid, order=grid.order[: int(count)])
        said[count] = say("{meaning}.", meaning=f"{of.shown[0].upper()}{of.shown[1:]}")
    return said


def _compare(subject: Subject, shown: Drawn) -> dict[str, Any] | None:
    """Describe the row that says what A is and which of the two is shown; None without A."""
    if subject.pinned is None:
        return None
    compared = shown.compared
    row = {"options": [], "chosen": "", "says": {}, "alike": False, "hint": "", "seen": []}
    if compared is None:
        return row | {"warning": shown.warning}
    alike = compared.pair.alike
    return row | {
        "options": [{"value": each, "says": say(each)} for each in compared.maps.choices],
        "chosen": compared.shown,
        "says": _sides(subject, shown, compared),
        "alike": alike,
        "seen": both_seen(subject, shown.capture),
        "hint": say("Hold F to flip between the two.") if alike else "",
        "warning": "",
    }


def _sides(subject: Subject, shown: Drawn, compared: Compared) -> dict[str, Any]:
    """Say what A is, and of B what is not the same."""
    pinned, both = compared.maps.pinned, compared.maps
    of_a = (pinned.image, pinned.title, pinned.step)
    others = of_b_alone(subject, str(shown.looked.step))
    if not others:
        same = say(
            "**A** is what you look at: choose another image, model or layer, and that is B."
        )
        return {"same": plainly(same), "parts": emphasised(same)}
    more = "" if both.alike else why_unlike(both.a.shape, both.b.shape)
    return {"a": " · ".join(of_a), "b": " · ".join(others), "more": more}


def _cost(subject: Subject, capture: Capture, seconds: float) -> str:
    """Say what the tiles cost in time and memory."""
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
