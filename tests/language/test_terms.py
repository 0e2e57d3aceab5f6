"""The Chinese of the page has one word for one thing, as the table of docs/languages.md says."""

import re
from pathlib import Path

from tests.language.pseudo import catalog_of

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| ([^|]*)\|$", re.MULTILINE)


def _terms() -> list[tuple[str, str, list[str]]]:
    """Return each term in English and Chinese, with the words that are not used for it."""
    text = (ROOT / "docs/languages.md").read_text("utf-8")
    table = text.split("## Words in Chinese")[1].split("\n## ")[0]
    rows = _ROW.findall(table)[1:]  # without the head
    return [
        (term, word, [no for no in others.strip().split(", ") if no]) for term, word, others in rows
    ]


def _said() -> dict[str, str]:
    """Return what page and lessons say, in English and in Chinese."""
    return {
        str(message.id): message.string if isinstance(message.string, str) else str(message.string)
        for message in catalog_of("zh_CN")
        if message.id
    }


def test_each_term_has_one_word() -> None:
    words = {term: word for term, word, _ in _terms()}
    alone = {said: word for said, word in _said().items() if said.lower() in words}
    assert alone == {said: words[said.lower()] for said in alone}
    assert len(alone) > 20
    rejected = {word: instead for _, instead, others in _terms() for word in others}
    assert {"透镜", "步幅", "兴奋"} < set(rejected)
    assert [
        (word, rejected[word], sentence[:200])
        for sentence in (*_said().values(), *_written().values())
        for word in rejected
        if word in sentence
    ] == []


def _written() -> dict[str, str]:
    """Return the documents in Chinese."""
    files = [*ROOT.glob("*.zh.md"), *ROOT.glob("docs/**/*.zh.md")]
    return {file.name: file.read_text("utf-8") for file in files}
