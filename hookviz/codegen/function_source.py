"""Put functions of HookViz into a script by their source, so that each formula stands once."""

import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable
from functools import cache
from typing import Any

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
