"""Check the text of a lesson, fill in its facts, and write it as HTML.

The parser that checks a text is the one that makes its HTML, so what is shown is what was checked:
no HTML of the text's own, no pictures, and links to https and to this app alone.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hookviz.errors import shorten
from hookviz.language import saying
from hookviz.language.catalogs import catalog
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons.part import Fact, did_you_mean, lesson_error

_DEEPEST = 12  # levels of lists and quotes within each other, two for each
_LINK = re.compile(r"https://[^\s/]|[?#]", re.IGNORECASE)
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_]\w*)(?::(?P<form>[^{}]*))?\}|[{}]", re.ASCII)
_FORM = re.compile(r"[+]?,?(\.\d)?[defg%]?", re.ASCII)


def _parser() -> MarkdownIt:
    """Build a Markdown parser with tables. It recognises HTML, so that it can be refused."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.validateLink = lambda _url: True  # type: ignore[assignment, method-assign]  # refused with its line
    return parser


_PARSER = _parser()


def parsed(text: str) -> list[Token]:
    """Return the tokens of a Markdown text."""
    return _PARSER.parse(text)


def check(tokens: list[Token], file: Path, line: int) -> None:
    """Check that a text holds only what a lesson may, so that no teacher's file brings HTML along.

    Args:
        tokens: of the text.
        file: where it stands.
        line: of the file, at which it begins, from 1.

    Raises:
        LessonError: it holds HTML, a picture, another link, or braces that name no fact.
    """
    at = line
    for token in tokens:
        at = line + token.map[0] if token.map else at
        if token.level > _DEEPEST:
            raise lesson_error(file, at, say("This is nested too deep for a lesson."))
        if token.type == "html_block":
            raise lesson_error(file, at, _no_html(token.content))
        for child, inside in _inline(token):
            _check_inline(child, file, at + inside)


def _inline(token: Token) -> Iterator[tuple[Token, int]]:
    """Yield the parts of a paragraph, each with how many lines below its first it stands."""
    below = 0
    for child in token.children or ():
        yield child, below
        below += child.type in ("softbreak", "hardbreak")


def _check_inline(token: Token, file: Path, line: int) -> None:
    if token.type == "html_inline":
        raise lesson_error(file, line, _no_html(token.content))
    if token.type == "image":
        raise lesson_error(
            file, line, say("A lesson has no pictures of its own. A live part shows one.")
        )
    if token.type == "link_open":
        target = str(token.attrGet("href") or "")
        if not _LINK.match(target):
            message = say(
                "The link to {target!r} is not shown. Links to https:// and, within this app, "
                "those that begin with ? or # work.",
                target=shorten(target, 60),
            )
            raise lesson_error(file, line, message)
    if token.type in ("text", "code_inline"):
        for braces in _BRACES.finditer(token.content):
            if braces["name"] is None and len(braces[0]) == 1:
                message = say(
                    "Braces name a fact, such as {example}. For a brace itself write two of them.",
                    example="{mean:.2f}",
                )
                raise lesson_error(file, line, message)
            if braces["form"] and not _FORM.fullmatch(braces["form"]):
                message = say(
                    "The fact {fact} has a format that is not known. Those such as {examples} are.",
                    fact=shorten(braces[0], 40),
                    examples=".2f, d, .1%",
                )
                raise lesson_error(file, line, message)


def _no_html(html: str) -> str:
    return say(
        "A lesson is Markdown without HTML, and here stands {html!r}.", html=shorten(html, 40)
    )


def translated(words: str) -> str:
    """Translate a text of a lesson; a teacher's own, which no catalog has, stays as it is."""
    return catalog(current()).gettext(words) if words else words


def as_html(words: str, facts: Mapping[str, Fact], file: Path, line: int) -> str:
    """Return a block of text as HTML, with its facts.

    Raises:
        LessonError: it names a fact that the live parts of its step do not have.
    """
    return _html(filled(words, facts, file, line))


def inline_html(words: str, facts: Mapping[str, Fact], file: Path, line: int) -> str:
    """Return a line of text as HTML without a paragraph around it; `as_html` otherwise."""
    return _html(_fill_tokens(_PARSER.parseInline(translated(words)), facts, file, line))


def as_plain(words: str, facts: Mapping[str, Fact], file: Path, line: int) -> str:
    """Return a line of text without any marks."""
    (inline,) = _fill_tokens(_PARSER.parseInline(translated(words)), facts, file, line)
    parts = (" " if child.type == "softbreak" else child.content for child in inline.children or ())
    return saying.closed_up("".join(parts))


def filled(words: str, facts: Mapping[str, Fact], file: Path, line: int) -> list[Token]:
    """Return the tokens of a text in the language that is spoken, with its facts."""
    return _fill_tokens(parsed(translated(words)), facts, file, line)


def _fill_tokens(
    tokens: list[Token], facts: Mapping[str, Fact], file: Path, line: int
) -> list[Token]:
    check(tokens, file, line)
    for token in tokens:
        _fill_in(token, facts, file, line)
    return tokens


def _html(tokens: list[Token]) -> str:
    rendered: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return saying.closed_up(rendered)


def _fill_in(token: Token, facts: Mapping[str, Fact], file: Path, line: int) -> None:
    for child in token.children or ():
        if child.type in ("text", "code_inline"):
            child.content = _with_facts(child.content, facts, file, line)
        elif child.type == "link_open" and str(child.attrGet("href")).startswith("https:"):
            child.attrSet("target", "_blank")
            child.attrSet("rel", "noopener noreferrer")


def _with_facts(text: str, facts: Mapping[str, Fact], file: Path, line: int) -> str:
    def written_fact(braces: re.Match[str]) -> str:
        name = braces["name"]
        if name is None:
            return braces[0][0]
        if name not in facts:
            message = say("No live part of this step has the fact {name!r}.", name=name)
            raise lesson_error(file, line, f"{message} {did_you_mean(name, facts)}".strip())
        return _fact_text(facts[name], braces["form"] or "", name, file, line)

    return _BRACES.sub(written_fact, text)


def _fact_text(value: Any, form: str, name: str, file: Path, line: int) -> str:
    if isinstance(value, str):
        return value
    try:
        written = format(value, form)
    except ValueError as error:
        message = say("The fact {name!r} can't be written as {format!r}.", name=name, format=form)
        raise lesson_error(file, line, message) from error
    if written.endswith("%"):
        return say("{share} %", share=saying.localised(written[:-1].replace("-", "−")))
    return saying.localised(written.replace("-", "−"))
