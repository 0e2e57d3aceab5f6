"""Show attention: patches of the photograph to click, and every head's map beside it.

The weights go to the browser once, in 16 bits each, so that it answers a click by itself. Above
`MOST_BYTES` it gets the mean and the chosen head; if these are too many, one query's weights.
"""

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.attention_panel import CLASS_TOKEN, COLORMAP, AttentionPanel, Cells
from hookviz.drawing.colormaps import LEVELS, PROJECTED, palette_of
from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say, sentences
from hookviz.markup import data_url
from hookviz.ui.components.files import mount
from hookviz.ui.theme import is_presenting
from hookviz.wording import number

MOST_BYTES = 4_000_000
"""Of weights for one picture: all 12 heads of 196 patches take a quarter of it."""

_UNIT = 1024  # of a weight of 1 when it is sent: small weights keep three digits


def show_attention(panel: AttentionPanel, key: str) -> None:
    """Show the panel, in which a patch and a head can be picked."""
    facts, file = attention_facts(panel, PROJECTED if is_presenting() else COLORMAP)
    mount("attention", key, facts, file)


@dataclass(frozen=True, eq=False, slots=True)
class _Sent:
    """Weights for the browser, ``(heads, windows, queries, keys)``, with names and cells."""

    names: tuple[str, ...]
    weights: NDArray[np.float16]
    queries: Cells
    note: str = ""


def attention_facts(
    panel: AttentionPanel, colormap: str, most_bytes: int = MOST_BYTES
) -> tuple[dict[str, Any], bytes]:
    """Return the browser's facts of a panel, and the bytes of its weights.

    Args:
        panel: the attention.
        colormap: of its maps, one of `hookviz.drawing.colormaps.COLORMAPS`.
        most_bytes: of the weights.
    """
    sent = _select(panel, most_bytes)
    file = sent.weights.astype("<f2").tobytes()
    head = say("mean") if panel.head is None else _head(panel.head)
    scale = say("Click a patch, or a map to lay it over the photograph. Each has its own scale.")
    height, width = panel.photograph.shape[:2]
    facts = {
        "title": panel.title,
        "caption": sentences(scale, sent.note),
        "image": data_url(encode_png(panel.photograph)),
        "size": [width, height],
        "grid": list(panel.grid),
        "names": list(sent.names),
        "heads": len(sent.names),
        "queries": sent.queries.tolist(),
        "keys": panel.keys.tolist(),
        "weights": [0, len(file)],
        "fixed": [
            {"name": each.name, "map": b64encode(each.values.astype("<f4").tobytes()).decode()}
            for each in panel.fixed
        ],
        "query": panel.query,
        "head": sent.names.index(head),
        "ramp": [f"#{bytes(colour).hex()}" for colour in palette_of(colormap)[:LEVELS, :3]],
        "key": hashlib.blake2b(file + repr(head + str(panel.query)).encode()).hexdigest(),
    }
    return facts, file


def _head(head: int) -> str:
    return say("head {number}", number=head)


def _select(panel: AttentionPanel, most_bytes: int) -> _Sent:
    """Return all heads, or the mean and one, or one query in all heads: the first that fits."""
    every = panel.weights.swapaxes(0, 1)  # (heads, windows, queries, keys)
    names = (say("mean"), *map(_head, range(len(every))))
    size = every[0].size * 2
    whole = (len(every) + 1) * size
    if whole <= most_bytes:
        return _Sent(
            names, _half(np.concatenate([every.mean(0, keepdims=True), every])), panel.queries
        )
    why = say(
        "All heads take {size} MB, of which {most} are sent",
        size=number(whole / 1e6),
        most=number(most_bytes / 1e6),
    )
    chosen = [] if panel.head is None else [panel.head]
    if (1 + len(chosen)) * size <= most_bytes:
        some = np.concatenate([every.mean(0, keepdims=True), every[chosen]])
        note = say("{why}: the mean, and the head that is chosen under More.", why=why)
        return _Sent((names[0], *map(_head, chosen)), _half(some), panel.queries, note)
    window, row = 0, 0
    if panel.query != CLASS_TOKEN:
        window, row = np.argwhere(panel.queries == panel.query)[0]
    only = np.full_like(panel.queries[:, :1], CLASS_TOKEN)
    only[window, 0] = panel.query
    rows = every[:, :, row : row + 1]
    note = say("{why}: what the patch chosen under More asks.", why=why)
    return _Sent(names, _half(np.concatenate([rows.mean(0, keepdims=True), rows])), only, note)


def _half(weights: NDArray[np.floating[Any]]) -> NDArray[np.float16]:
    return (weights * _UNIT).astype(np.float16)
