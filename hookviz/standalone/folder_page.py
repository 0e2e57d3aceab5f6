"""Put a page of a folder of pages together: static HTML in English, which speaks its reader's."""

import base64
import hashlib
import json
import re
from functools import cache
from html import escape

from hookviz.explorer.client_files import bundle, scope
from hookviz.explorer.excites import OF_CELLS
from hookviz.language.catalogs import languages, own_name
from hookviz.language.saying import mark, say
from hookviz.language.speaking import speaking
from hookviz.standalone.client_page import CLIENT

ALL_LAYERS = mark("All layers")
BACK, ON = mark("← Previous layer"), mark("Next layer →")
TITLE = mark("What excites each channel")
MADE_OF = mark(
    "{model}, {weights} weights: {channels} channels of {layers} layers, each with what excites it "
    "most among {images} images, strongest first."
)
CHANNELS = mark("{count} channels")
CHANNEL = mark("Channel {channel}")
FIRST_PATCHES = mark("The strongest patches of some channels")
EACH_PATCH = mark(
    "Each patch is what the channel's strongest cell sees of the image, with its value."
)
PATCH = mark("{image}: {excitation} at row {row}, column {column}")
LOST = mark("no patch")
SILENT = mark("No image excites it.")
FACTS = mark(
    "Mean maximum {mean}, zero in {zeros}, the strongest of its layer for {strongest} of images"
)
TO_CHANNEL = mark("To channel")
LIGHT, DARK, LANGUAGE = mark("Light"), mark("Dark"), mark("Language")

_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src 'self' file: data:; base-uri 'none'; form-action 'none'"
)
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
GENERATOR = "HookViz atlas"
"""What the pages say made them, by which a folder of them is known."""


def said(tag: str, text: str, attributes: str = "", **facts: str) -> str:
    """Return an element that says a sentence in its reader's language, with its facts.

    Args:
        tag: of the element.
        text: one of the sentences above.
        attributes: others, as HTML.
        facts: what stands for ``{name}`` in it.
    """
    return f"<{tag}{_says(text, facts)}{attributes}>{escape(text.format(**facts))}</{tag}>"


def said_in(attribute: str, text: str, **facts: str) -> str:
    """Return an attribute, such as ``alt``, that says a sentence in its reader's language."""
    words = escape(text.format(**facts))
    return f'{_says(text, facts)} data-to="{attribute}" {attribute}="{words}"'


def _says(text: str, facts: dict[str, str]) -> str:
    with_facts = f' data-facts="{escape(json.dumps(facts, ensure_ascii=False))}"' if facts else ""
    return f' data-say="{escape(text)}"{with_facts}'


def head(title: str, rules: str = "") -> str:
    """Return how a page begins, up to its body.

    Args:
        title: of the window, any text.
        rules: of CSS, beside those of every page.
    """
    style = _style() + rules
    policy = _POLICY.format(script=_hash(_script()), style=_hash(style))
    return _HEAD.format(policy=policy, generator=GENERATOR, title=escape(title), style=style)


def foot() -> str:
    """Return how a page ends: its sentences in every language, and its script."""
    return (
        f'<script type="application/json" id="languages">{_languages()}</script>\n'
        f"<script>{_script()}</script>\n</body>\n</html>\n"
    )


@cache
def _languages() -> str:
    """Return every language with its sentences, as JSON that ends no element early."""
    spoken = []
    for language in languages():
        with speaking(language):
            words = {text: say(text) for text in _SENTENCES}
        spoken.append(
            {
                "language": language.replace("_", "-"),
                "name": own_name(language),
                "words": {text: own for text, own in words.items() if own != text},
            }
        )
    return json.dumps(spoken, ensure_ascii=False).replace("<", "\\u003c")


_SENTENCES = (
    *(ALL_LAYERS, BACK, ON, TITLE, MADE_OF, CHANNELS, CHANNEL, FIRST_PATCHES, EACH_PATCH, PATCH),
    *(OF_CELLS, LOST, SILENT, FACTS, TO_CHANNEL, LIGHT, DARK, LANGUAGE),
)


@cache
def _script() -> str:
    begin = CLIENT / "in_folder.js"
    script = f'"use strict";\n{bundle(begin)}\n{scope(begin)}.begin();\n'
    assert not re.search(r"</script|<!--", script, re.IGNORECASE), "it would end early"
    return script


@cache
def _style() -> str:
    return (CLIENT / "in_folder.css").read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
