"""A language that nobody speaks, in which what is not translatable is seen at once.

Every sentence has its Latin letters in full width: what stands on a page in ordinary letters was
never given to `say`.
"""

import re
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from hookviz.language import catalogs
from scripts import languages

LANGUAGE = "eo"
_WIDE = {ord("a") + place: chr(0xFF41 + place) for place in range(26)}
_WIDE |= {ord("A") + place: chr(0xFF21 + place) for place in range(26)}
_KEPT = re.compile(r"(\{[^{}]*\}|<[^>]*>|:material/\w+:)")


@cache
def catalog_of(language: str) -> Catalog:
    """All messages with their translations, looked for once: it takes seconds."""
    return languages.catalog_of(language)


def wide(text: str) -> str:
    """`text` with its letters in full width; facts, HTML and icons stay."""
    parts = _KEPT.split(text)
    return "".join(part if place % 2 else part.translate(_WIDE) for place, part in enumerate(parts))


def write_catalog(folder: Path) -> None:
    """The files of that language, with all that is said, and what classes are called."""
    catalog = Catalog(locale=LANGUAGE, charset="utf-8", fuzzy=False)
    for message in catalog_of("zh_CN"):
        if not message.id:
            continue
        forms = (message.id,) if isinstance(message.id, str) else tuple(message.id)
        strings = tuple(map(wide, forms))
        catalog.add(message.id, strings if len(forms) > 1 else strings[0], message.locations)
    _write(folder / f"{LANGUAGE}.po", catalog)
    names = Catalog(locale=LANGUAGE, charset="utf-8", fuzzy=False)
    for message in catalogs.read("zh_CN", catalogs.CLASS_NAMES) or ():
        if message.id:
            names.add(message.id, wide(str(message.id)), context=message.context)
    _write(folder / catalogs.CLASS_NAMES / f"{LANGUAGE}.po", names)


def _write(path: Path, catalog: Catalog) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalog)
