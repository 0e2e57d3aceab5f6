"""Text with its facts as HTML, of which nothing is anybody's own."""

from pathlib import Path

import pytest

from hookviz.errors import LessonError
from hookviz.language.catalogs import languages
from hookviz.language.speaking import speaking
from hookviz.lessons import prose
from hookviz.lessons.lesson import Text
from hookviz.lessons.part import Fact
from hookviz.ui.lessons.catalog import lessons

FILE = Path("01-a.md")
FACTS: dict[str, Fact] = {
    "count": 12345,
    "mean": -0.12345,
    "name": "conv_1 <b>*x*</b> [a](javascript:x) {mean}",
}


def html(words: str) -> str:
    return prose.as_html(words, FACTS, FILE, 7)


def test_facts_are_filled_in_as_their_format_and_the_language_say() -> None:
    assert html("a **{count:,}** b") == "<p>a <strong>12,345</strong> b</p>\n"
    assert html("`{mean:.2f}` and {mean:+.1f}") == "<p><code>−0.12</code> and −0.1</p>\n"
    assert html("{{count}} and {count}") == "<p>{count} and 12345</p>\n"
    assert html("| {count} | b |\n|---|---|\n| c | {mean:.1%} |").count("−12.3 %") == 1
    with speaking("de"):
        assert html("{count:,} {mean:.2f}") == "<p>12.345 −0,12</p>\n"
    assert prose.as_plain("a **{count:,}**\n`b`", FACTS, FILE, 1) == "a 12,345 b"


def test_a_fact_and_the_pages_own_directives_are_text() -> None:
    """Names of layers, classes and files come from models and people."""
    assert html("{name}") == ("<p>conv_1 &lt;b&gt;*x*&lt;/b&gt; [a](javascript:x) {mean}</p>\n")
    assert html("`{name}`").startswith("<p><code>conv_1 &lt;b&gt;*x*")
    assert html(":red[x] :material/x: $x^2$") == "<p>:red[x] :material/x: $x^2$</p>\n"
    assert 'target="_blank" rel="noopener noreferrer"' in html("[a](https://x.org)")
    assert "target" not in html("[a](?lesson=all)")


def test_an_unknown_fact_is_told_with_the_nearest() -> None:
    with pytest.raises(LessonError, match=r"01-a\.md, line 7: .*'men'. Did you mean 'mean'"):
        html("{men}")
    with pytest.raises(LessonError, match=r"There are: count, mean, name"):
        html("{zzzzzz}")
    with pytest.raises(LessonError, match=r"'mean' can't be written as 'd'"):
        html("{mean:d}")


def test_html_of_ones_own_gets_nowhere_even_in_a_translation() -> None:
    for words in ("<b>x</b>", "[a](javascript:x)", "![a](https://x.org)", "[a](data:,x)"):
        with pytest.raises(LessonError):
            html(words)
        with pytest.raises(LessonError):
            prose.inline_html(words, FACTS, FILE, 1)
    assert html("a < b and `<script>`") == "<p>a &lt; b and <code>&lt;script&gt;</code></p>\n"
    assert html("```\n<script>\n```") == "<pre><code>&lt;script&gt;\n</code></pre>\n"
    quoted = html('[a](https://x.org/"onclick=alert)')
    assert 'href="https://x.org/%22onclick=alert"' in quoted


@pytest.mark.parametrize("language", languages())
def test_no_stars_of_a_bold_word_are_left_in_a_translation(language: str) -> None:
    """A ``**`` behind a sign and before a letter closes nothing, which Chinese often has."""
    with speaking(language):
        for lesson in lessons():
            texts = [
                block.words
                for step in lesson.steps
                for block in step.blocks
                if isinstance(block, Text)
            ]
            left = [words for words in map(prose.translated, texts) if "**" in _seen(words)]
            assert left == [], lesson.slug


def _seen(words: str) -> str:
    return "".join(
        child.content
        for token in prose.parsed(words)
        for child in token.children or ()
        if child.type == "text"
    )
