"""Put a page together: one HTML file with its script, its styles and what was recorded for it.

Answers of several languages are packed into one, rows as columns, values as float16. ``blocks.js``,
``recorded.js`` and ``halves.js`` unpack them.
"""

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hookviz.explorer.client_files import bundle, colour_variables, scope
from hookviz.explorer.encoding import largest
from hookviz.language.catalogs import languages
from hookviz.language.saying import mark, say
from hookviz.language.speaking import speaking

LANGUAGE, THEME = ".language", ".theme"
"""Keys of what differs; no layer is called so, for no part of a name is empty."""

_LARGEST = 15  # the power of two just above the largest value, as float16 keeps it
_SMALLEST = -1074  # the least power of two of a float64


def varied(name: str, variants: Sequence[Any]) -> Any:
    """Put answers of one form into one: what they agree on stands once.

    Args:
        name: under which what differs stands, `LANGUAGE` or `THEME`.
        variants: an answer for each of the languages or themes.

    >>> varied(".language", [{"rows": 3, "title": "Why?"}, {"rows": 3, "title": "为什么？"}])
    {'rows': 3, 'title': {'.language': ['Why?', '为什么？']}}
    """
    first = variants[0]
    if all(each == first and type(each) is type(first) for each in variants):
        return first
    if all(isinstance(each, Mapping) and each.keys() == first.keys() for each in variants):
        return {key: varied(name, [each[key] for each in variants]) for key in first}
    if all(isinstance(each, list | tuple) and len(each) == len(first) for each in variants):
        return [varied(name, each) for each in zip(*variants, strict=True)]
    return {name: list(variants)}


def columns(rows: Sequence[Any]) -> dict[str, Any]:
    """Return rows as columns, which take a fifth less: no name of a field is said twice.

    A node is ``{"same": value}`` where every row has it, ``{"fields": …}`` or ``{"parts": […]}``
    where every row has those fields or so many parts, and else ``{"rows": [a value for each]}``.

    >>> columns([{"a": 1, "b": 0}, {"a": 2, "b": 0}])
    {'fields': {'a': {'rows': [1, 2]}, 'b': {'same': 0}}}
    """
    first = rows[0]
    if all(row == first for row in rows):
        return {"same": first}
    if all(isinstance(row, Mapping) and row.keys() == first.keys() for row in rows):
        return {"fields": {key: columns([row[key] for row in rows]) for key in first}}
    if all(isinstance(row, list | tuple) and len(row) == len(first) for row in rows):
        return {"parts": [columns(part) for part in zip(*rows, strict=True)]}
    return {"rows": list(rows)}


def packed(facts: Any) -> str:
    """Return facts as JSON, deflated, in base64."""
    try:
        text = _json(facts)
    except ValueError:  # a number that JSON lacks
        text = _json(_without_non_finite(facts))
    return deflated(text.encode())


def deflated(data: bytes) -> str:
    """Return bytes deflated as ``DecompressionStream`` reads them, in base64."""
    return in_base64(zlib.compress(data, 9))


def in_base64(data: bytes) -> str:
    """Return bytes as they are, in base64, as a page's blocks are written."""
    return base64.b64encode(data).decode("ascii")


class Halves(NamedTuple):
    """Values as float16.

    Attributes:
        text: of all values, the low bytes before the high ones, deflated, in base64.
        power: a kept number is the value by 2 to this power, so that none is too large for float16.
        error: how far a kept value is from its own, at most.
    """

    text: str
    power: int
    error: float


def halves(values: NDArray[np.float32]) -> Halves:
    """Keep values as float16, scaled by a power of two; NaN and infinity stay what they are."""
    most = largest(values)
    power = _LARGEST - math.frexp(most)[1] if most else 0
    power = max(power, _SMALLEST)
    scaled = np.ldexp(values.astype(np.float64), power)
    with np.errstate(over="ignore"):
        kept = scaled.astype("<f2")
    with np.errstate(invalid="ignore"):  # infinity less itself
        error = np.abs(np.ldexp(kept.astype(np.float64), -power) - values)
    return Halves(_bytes_apart(kept), power, largest(error))


def whole_floats(values: NDArray[np.float32]) -> str:
    """Keep float32 values as they are, of each byte all before those of the next, deflated."""
    return _bytes_apart(values.astype("<f4"))


def _json(facts: Any) -> str:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _without_non_finite(value: Any) -> Any:
    """Return facts with None for NaN and infinity, as the client has them."""
    if isinstance(value, Mapping):
        return {key: _without_non_finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _bytes_apart(values: NDArray[Any]) -> str:
    apart = np.frombuffer(values.tobytes(), np.uint8).reshape(-1, values.itemsize).T
    return deflated(apart.tobytes())


Result = TypeVar("Result")

CLIENT = Path(__file__).parent / "client"
"""The folder of what runs in a page, beside the explorer's client."""

# Nothing comes from elsewhere and nothing goes there; scripts and styles are this file's own.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'{runs}; style-src 'sha256-{style}'; "
    "img-src {images}; base-uri 'none'; form-action 'none'"
)
# A network is run by WebAssembly in a worker; a page makes both of its own blocks.
_RUNS = " 'wasm-unsafe-eval' blob:; worker-src blob:"
_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{generator}">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title} · HookViz</title>
<style>{style}</style>
</head>
<body>
"""
_BODY = """\
<main>
<h1>HookViz</h1>
<h2>{title}</h2>
<div id="explorer"></div>
</main>
<noscript><p>{without}</p></noscript>
<p id="failed" role="alert" hidden>{failed}</p>
{first}
<script>{script}</script>
{rest}
</body>
</html>
"""
_WITHOUT = mark("This page draws itself by JavaScript, which is switched off here.")
_FAILED = mark(
    "This page could not be shown: it needs a browser of 2024 or later, and its file whole."
)
_IN_BASE64 = re.compile(r"[A-Za-z0-9+/=]*")


def page_html(
    title: str,
    first: Mapping[str, str],
    rest: Mapping[str, str],
    *,
    script_name: str = "in_file.js",
    runs: bool = False,
) -> str:
    """Return a page as HTML.

    Args:
        title: of the window, any text.
        first: texts in base64 that come first, by names of letters, digits and hyphens. The
            page begins once these are read.
        rest: more texts.
        script_name: which script of `CLIENT` begins it.
        runs: whether it runs a network, in a worker.
    """
    script = page_script(script_name)
    variables = "".join(f"{name}:{value};" for name, value in colour_variables().items())
    style = f":root{{{variables}}}\n{(CLIENT / 'around.css').read_text('utf-8')}"
    head = page_head(title, style, script, images="data: blob:", generator="HookViz", runs=runs)
    return head + _BODY.format(
        title=escape(title),
        without=_in_all_languages(_WITHOUT),
        failed=_in_all_languages(_FAILED),
        first=_blocks(first),
        rest=_blocks(rest),
        script=script,
    )


def _in_all_languages(text: str) -> str:
    """Return a sentence in each language, for where none can be chosen any more."""
    return " · ".join(in_each_language(lambda: escape(say(text))))


def page_head(
    title: str, style: str, script: str, *, images: str, generator: str, runs: bool = False
) -> str:
    """Return how a page begins, up to its body: it runs and loads nothing but these.

    Args:
        title: of the window, any text.
        style: the page's own CSS.
        script: the page's own script.
        images: sources of images, as a content security policy has them.
        generator: what the page says made it.
        runs: whether it runs a network, in a worker.
    """
    policy = _POLICY.format(
        script=_hash(script), style=_hash(style), images=images, runs=_RUNS if runs else ""
    )
    return _HEAD.format(policy=policy, generator=generator, title=escape(title), style=style)


def in_each_language(call: Callable[[], Result]) -> list[Result]:
    """Return what a call returns in each language."""
    results = []
    for language in languages():
        with speaking(language):
            results.append(call())
    return results


def _blocks(blocks: Mapping[str, str]) -> str:
    """Return data that no browser runs: in base64 nothing ends the elements early."""
    assert all(map(_IN_BASE64.fullmatch, blocks.values())), list(blocks)
    return "\n".join(
        f'<script type="application/octet-stream" id="{name}">{text}</script>'
        for name, text in blocks.items()
    )


@cache
def page_script(name: str) -> str:
    """Return a script of `CLIENT` with all that it imports, and the call that starts it."""
    begin = CLIENT / name
    script = f'"use strict";\n{bundle(begin)}\n{scope(begin)}.begin();\n'
    assert not re.search(r"</script|<!--", script, re.IGNORECASE), "it would end early"
    return script


def _hash(text: str) -> str:
    return in_base64(hashlib.sha256(text.encode()).digest())
