"""Show a kernel whose numbers can be typed over, with presets, stride and padding."""

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hookviz import shallow_json
from hookviz.language.saying import say
from hookviz.lessons.kernels import Kernel
from hookviz.ui.components.files import show

_LARGEST = 1e6
"""What a weight is at most: what is larger is refused in words."""
_LARGEST_SIDE = 11
_LEFT_OPEN = {name: f"{{{name}}}" for name in ("text", "weight")}
"""Facts that the browser fills in."""
_MOST_STRIDE, _MOST_PADDING = 4, 3


@dataclass(frozen=True, slots=True)
class EditedKernel:
    """A kernel and how it moves; `preset` is the one that it is, ``""`` for one of nobody's."""

    kernel: Kernel
    stride: int
    padding: int
    preset: str


def edit_kernel(
    edited: EditedKernel,
    presets: Mapping[str, str],
    size: str,
    effect: str,
    on_change: Callable[[EditedKernel], None],
    *,
    key: str,
    edits: Collection[str] = ("numbers", "moves"),
) -> None:
    """Show the editor of a kernel, its stride and its padding.

    Args:
        edited: what is shown.
        presets: titles of the kernels to begin from, by name.
        size: what is said beside it of the map.
        effect: what the last change has done to the map, in words.
        on_change: gets what was changed; of a preset its name alone counts, and not the kernel.
        key: of the widget.
        edits: what can be changed beside the kernels to begin from: the kernel's ``"numbers"``,
            its ``"moves"``, which are stride and padding.
    """

    def changed(sent: object) -> None:
        change = _read(sent, len(edited.kernel), presets)
        if change is not None:
            on_change(change)

    data = {
        "kernel": edited.kernel,
        "stride": edited.stride,
        "padding": edited.padding,
        "preset": edited.preset,
        "presets": [{"name": name, "title": title} for name, title in presets.items()],
        "size": size,
        "effect": effect,
        "numbers": "numbers" in edits,
        "moves": "moves" in edits,
        "largest": _LARGEST,
        "words": {
            "label": say("The kernel"),
            "presets": say("Kernels to begin from"),
            "numbers": say("The kernel's numbers"),
            "number": say("Row {row}, column {column}", row="{row}", column="{column}"),
            "stride": say("Stride"),
            "padding": say("Padding"),
            "more": say("More: row {row}, column {column}", row="{row}", column="{column}"),
            "less": say("Less: row {row}, column {column}", row="{row}", column="{column}"),
            "turned": say("Turn all signs"),
            "noNumber": say("{text} is no number. The weight stays {weight}.", **_LEFT_OPEN),
            "tooLarge": say(
                "{text} is too large: a weight goes from −{most:,} to {most:,}. It stays {weight}.",
                most=int(_LARGEST),
                **_LEFT_OPEN,
            ),
        },
    }
    show("kernel_editor", key, data, changed=changed)


def written_kernel(edited: EditedKernel) -> str:
    """Return the kernel as text, short enough for a link; see `read_kernel`."""
    rows = [[float(f"{value:.7g}") for value in row] for row in edited.kernel]
    parts = [[] if edited.preset else rows, edited.stride, edited.padding, edited.preset]
    return json.dumps(parts, separators=(",", ":"))


def read_kernel(text: str, presets: Mapping[str, Kernel]) -> EditedKernel | None:
    """Return the kernel of `written_kernel`, of a preset as it is now; None where it is none."""
    try:
        rows, stride, padding, preset = shallow_json.parse(text)
        kernel = [*map(list, presets[preset])] if preset else rows
        sent = {"kernel": kernel, "stride": stride, "padding": padding, "preset": preset}
        return _read(sent, min(len(kernel), _LARGEST_SIDE), presets)
    except (ValueError, TypeError, KeyError):
        return None


def _read(sent: Any, side: int, presets: Collection[str]) -> EditedKernel | None:
    """Return what the browser sent; None where it is out of bounds or nothing of this component."""
    match sent:
        case {
            "kernel": [*rows],
            "stride": int(stride),
            "padding": int(padding),
            "preset": str(preset),
        } if (
            1 <= stride <= _MOST_STRIDE
            and 0 <= padding <= _MOST_PADDING
            and (preset in presets or not preset)
            and len(rows) == side
            and all(_is_row(row, side) for row in rows)
        ):
            kernel = tuple(tuple(float(value) for value in row) for row in rows)
            return EditedKernel(kernel, stride, padding, preset)
    return None


def _is_row(row: object, side: int) -> bool:
    return (
        isinstance(row, list)
        and len(row) == side
        and all(
            isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _LARGEST
            for value in row
        )
    )
