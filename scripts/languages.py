"""Bring the catalogs up to date with what the code, the scripts and the lessons say.

``python -m scripts.languages`` adds what is new to each PO file of `hookviz.language`, without a
translation, and takes out what nobody says any more. ``python -m scripts.languages de`` begins
``de.po``. A test fails as long as something is missing.
"""

import io
import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po

from hookviz.language import catalogs
from hookviz.lessons import scripts
from hookviz.ui.lessons import catalog as lessons

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hookviz"
FOLDER = PACKAGE / "language"

_KEYWORDS = {"say": None, "mark": None, "say_count": (1, 2)}
_FRAME = re.compile(r"`\s*(<\w.*?)`", re.DOTALL)
_SPOKEN = ("aria-label", "title", "placeholder", "alt")
_HEADER = """\
# {name} for HookViz: what the page says, sentence by sentence.
# `python -m scripts.languages` adds what is new, with an empty msgstr to be filled in."""

Said = tuple[str, str | tuple[str, ...]]
"""Where something is said, as a path in the repository, and the message or its two forms."""


def said() -> Iterator[Said]:
    """Yield all that is said, file by file."""
    for file in sorted(PACKAGE.rglob("*.py")):
        yield from _called(file, "python")
    for file in sorted(PACKAGE.rglob("*.js")):
        yield from _called(file, "javascript")
        yield from _framed(file)
    file = ROOT / "assets/samples/samples.json"
    for sample in json.loads(file.read_text("utf-8")):
        for name in ("title", "alt"):
            yield file.relative_to(ROOT).as_posix(), sample[name]
    for lesson in lessons.read_lessons():
        for words, _ in lessons.words_of(lesson):
            yield lesson.file.relative_to(ROOT).as_posix(), words
    for name in scripts.script_names():
        place = Path(scripts.FOLDER, f"{name}.py").relative_to(ROOT).as_posix()
        text = scripts.read_script(name).text
        for words in (*scripts.printed_words(text), *scripts.comment_words(text)):
            yield place, words


def catalog_of(language: str) -> Catalog:
    """Return all messages, with the translations that the language's file has of them."""
    catalog = Catalog(locale=language, project="HookViz", charset="utf-8", fuzzy=False)
    catalog.header_comment = _HEADER.format(name=catalogs.own_name(language))
    file = FOLDER / f"{language}.po"
    before = read_po(io.BytesIO(file.read_bytes()), locale=language) if file.exists() else Catalog()
    for place, message in said():
        known = before.get(message)
        if known is not None and isinstance(known.id, tuple) != isinstance(message, tuple):
            known = None  # it had one form, and has two now
        catalog.add(message, known.string if known else None, locations=[(place, 0)])
    return catalog


def written(catalog: Catalog) -> bytes:
    """Return a catalog as its file's bytes."""
    file = io.BytesIO()
    write_po(file, catalog, width=100, include_lineno=False, sort_output=True, omit_header=False)
    lines = file.getvalue().decode().splitlines()
    dropped = (
        *("POT-Creation-Date", "PO-Revision-Date", "Generated-By", "Last-Translator"),
        *("Report-Msgid-Bugs-To", "Language-Team", "Project-Id-Version"),
    )
    return (
        "\n".join(
            line for line in lines if not line.startswith(tuple(f'"{name}' for name in dropped))
        ).encode()
        + b"\n"
    )


def _called(file: Path, kind: str) -> Iterator[Said]:
    place = file.relative_to(ROOT).as_posix()
    with file.open("rb") as source:
        for _, message, _, _ in extract(kind, source, keywords=_KEYWORDS):
            yield place, message


def _framed(file: Path) -> Iterator[Said]:
    """Yield what HTML in a script says by itself; `inLanguage` in ``shared.js`` translates it."""
    place = file.relative_to(ROOT).as_posix()
    for html in _FRAME.findall(file.read_text("utf-8")):
        for text in _Spoken(html).texts:
            yield place, text


class _Spoken(HTMLParser):
    """Parser for the texts and spoken attributes of HTML, without what a script fills in."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, _tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in _SPOKEN:
                self._take(value or "")

    def handle_data(self, data: str) -> None:
        self._take(data)

    def _take(self, text: str) -> None:
        text = text.strip()
        if re.search(r"[A-Za-z]{2}", text) and "${" not in text:
            self.texts.append(text)


def main(languages: list[str]) -> None:
    """Write the file of each language, or of all that there are."""
    for language in languages or list(catalogs.files()):
        catalog = catalog_of(language)
        (FOLDER / f"{language}.po").write_bytes(written(catalog))
        missing = sum(not message.string for message in catalog if message.id)
        print(f"{language}: {len(catalog)} messages, {missing} of them not translated")


if __name__ == "__main__":
    main(sys.argv[1:])
