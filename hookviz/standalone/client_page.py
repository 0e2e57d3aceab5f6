"""Put a page together: one HTML file with its script, its styles and what was recorded for it."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

from hookviz.explorer.client_files import bundle, colour_variables, scope
from hookviz.language.catalogs import languages
from hookviz.language.saying import mark, say
from hookviz.language.speaking import speaking

CLIENT = Path(__file__).parent / "client"
"""The folder of what runs in a page, beside the explorer's client."""

# Nothing comes from elsewhere and nothing goes there; scripts and styles are this file's own.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="HookViz">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title} · HookViz</title>
<style>{style}</style>
</head>
<body>
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


def page_html(title: str, first: Mapping[str, str], rest: Mapping[str, str]) -> str:
    """Return a page as HTML.

    Args:
        title: of the window, any text.
        first: what is shown first: texts in base64, by names of letters, digits and hyphens. The
            page begins once these are read.
        rest: more of them.
    """
    script, style = _script(), _style()
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    return _PAGE.format(
        policy=policy,
        title=escape(title),
        style=style,
        without=_in_every_language(_WITHOUT),
        failed=_in_every_language(_FAILED),
        first=_blocks(first),
        rest=_blocks(rest),
        script=script,
    )


def _in_every_language(text: str) -> str:
    """Return a sentence in each language, for where none can be chosen any more."""
    said = []
    for language in languages():
        with speaking(language):
            said.append(escape(say(text)))
    return " · ".join(said)


def _blocks(blocks: Mapping[str, str]) -> str:
    return "\n".join(_block(name, text) for name, text in blocks.items())


def _block(name: str, text: str) -> str:
    """Return data that no browser runs: in base64 nothing ends the element early."""
    assert _IN_BASE64.fullmatch(text), name
    return f'<script type="application/octet-stream" id="{name}">{text}</script>'


@cache
def _script() -> str:
    begin = CLIENT / "in_file.js"
    script = f'"use strict";\n{bundle(begin)}\n{scope(begin)}.begin();\n'
    assert not re.search(r"</script|<!--", script, re.IGNORECASE), "it would end early"
    return script


@cache
def _style() -> str:
    variables = "".join(f"{name}:{value};" for name, value in colour_variables().items())
    return f":root{{{variables}}}\n{(CLIENT / 'around.css').read_text('utf-8')}"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
