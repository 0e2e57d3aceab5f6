"""Write names, calls and the source of functions as they stand in a script."""

import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable
from functools import cache
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


_WIDTH = 100  # characters of a line


def source_of(*functions: Callable[..., Any]) -> str:
    """Return the source of functions as a person without HookViz would write it.

    Type annotations are left out, and what docstrings say from ``Args:`` or ``Raises:`` on. A
    function may use ``np``, ``torch``, ``nn``, ``math`` and functions that the script has too; no
    constant of its module.

    >>> print(source_of(grad_cam))  # doctest: +SKIP
    def grad_cam(activation, gradient):
        ...
    """
    return "\n\n\n".join(map(_source, functions))


@cache
def _source(function: Callable[..., Any]) -> str:
    body = _body(textwrap.dedent(inspect.getsource(function)))
    body = _SECTIONS.sub(r"\n\1", body, count=1)
    body = _RETURNED.sub(r"\1return \3", body)
    body = _ANNOTATED.sub(r"\1\2 = ", body)
    body = _SHORT_DOCSTRING.sub(r'\1"""', body, count=1)
    return f"{_signature(function)}\n{body}".rstrip()


def _body(source: str) -> str:
    """Return what comes after the signature, which may take several lines."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and depth == 0:
            return "".join(source.splitlines(keepends=True)[token.end[0] :])
    raise AssertionError(source)


def _signature(function: Callable[..., Any]) -> str:
    """Return the ``def`` line without annotations, wrapped as ruff does where it is too long."""
    bare = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [each.replace(annotation=empty) for each in bare.parameters.values()]
    inside = str(bare.replace(parameters=parameters, return_annotation=empty))[1:-1]
    line = f"def {function.__name__}({inside}):"
    return line if len(line) <= _WIDTH else f"def {function.__name__}(\n    {inside}\n):"


_SECTIONS = re.compile(r'\n\n {4}(?:Args|Raises|Attributes):\n.*?\n( {4}""")', re.DOTALL)
_SHORT_DOCSTRING = re.compile(r'\A( {4}"""[^\n"]+)\n {4}"""')  # one line is left of it
_RETURNED = re.compile(r"^( {4,})(\w+): [\w.\[\], |]+ = ([^\n]+)\n\1return \2$", re.MULTILINE)
_ANNOTATED = re.compile(r"^( {4,}\(?)(\w+): [\w.\[\], |]+ = ", re.MULTILINE)
