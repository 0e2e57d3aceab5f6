"""Write names and calls as they stand in a script."""

import re
from typing import Any

from hookviz.types import LAST, TOKENS, WINDOWS, Layout


def quoted(text: str) -> str:
    """Quote a string as Python writes it, so that a file's name can't become code."""
    written = repr(text)
    return written if '"' in written or "\\" in written else f'"{written[1:-1]}"'


def call(function: str, *arguments: str, **options: Any) -> str:
    """Write a function call: arguments that are written already, then options by their names."""
    named = [f"{name}={value}" for name, value in options.items()]
    return f"{function}({', '.join([*arguments, *named])})"


def file_name(name: str, ending: str) -> str:
    """Return a file's name of characters that every system takes."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII) + f".{ending}"


def to_fill_in(function: str, says: str, then: str) -> str:
    """Write a function that only the person can fill in, and the line that calls it."""
    return _TO_FILL_IN.format(call=function, says=says, then=then)


_TO_FILL_IN = '''
def {call}:
    """{says}"""
    raise SystemExit("Fill in {call} in this script: only you have it.")


{then}'''


def as_maps(layout: Layout) -> str:
    """Write what follows a tensor, with or without its batch, to have it as ``(C, H, W)``.

    Of video that is ``(C, T, H, W)``. Windows have no batch: of those it makes ``(1, C, H, W)``.
    """
    if layout.order == TOKENS:
        rest = f"[..., {layout.prefix_tokens}:, :]" if layout.prefix_tokens else ""
        return f"{rest}.unflatten(-2, {layout.grid}).movedim(-1, -3)"
    if layout.order == WINDOWS:
        return _windows(layout)
    axis = -4 if layout.frames else -3
    return f".movedim(-1, {axis})" if layout.order == LAST else ""


def _windows(layout: Layout) -> str:
    """Write what follows the windows of all images to have them as ``(N, C, H, W)``."""
    (down, across), (rows, columns) = layout.windows, layout.grid
    axes = (0, 5, 3, 1, 4, 2) if layout.strided else (0, 5, 1, 3, 2, 4)
    code = f".unflatten(0, (-1, {down}, {across})).flatten(3, -2).unflatten(3, {layout.window})"
    code += f".permute{axes}.flatten(4).flatten(2, 3)[..., :{rows}, :{columns}]"
    return f"{code}.roll({layout.shift}, (2, 3))" if any(layout.shift) else code
