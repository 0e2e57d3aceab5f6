"""Find and read the languages: English in the code itself, and a PO file for each other.

A file beside this one, or in the folder that HOOKVIZ_LANGUAGES names, is a language by being there:
``zh_CN.po`` is Simplified Chinese. What classes are called in it is a second file, which a language
can do without, in a folder ``class_names`` beside it.
"""

import gettext
import io
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

ENGLISH = "en"
SETTING = "HOOKVIZ_LANGUAGES"
"""Read here and not in `hookviz.settings`, whose errors are said in a language themselves."""
CLASS_NAMES = "class_names"
"""The folder with the files of what classes are called, see `hookviz.language.naming`."""

_HERE = Path(__file__).parent
_OWN_NAMES = {ENGLISH: "English", "zh_CN": "简体中文"}
"""Those in the box, for which nobody waits for Babel, which would name Chinese with the country."""


@cache
def files(inside: str = "") -> Mapping[str, Path]:
    """Return the PO file of each language by its code, such as ``"zh_CN"``; English has none.

    Args:
        inside: `CLASS_NAMES` for the files of these.
    """
    more = os.environ.get(SETTING, "")
    folders = [_HERE, *([Path(more).expanduser()] if more else [])]
    files = {
        file.stem: file for folder in folders for file in sorted((folder / inside).glob("*.po"))
    }
    return MappingProxyType(files)


def languages() -> tuple[str, ...]:
    """Return the codes of all languages, English first."""
    return ENGLISH, *files()


@cache
def read(language: str, inside: str = "") -> "Catalog | None":
    """Read the messages of a language's file, see `files`; None where there is none."""
    file = files(inside).get(language)
    if file is None:
        return None
    from babel.messages import pofile  # noqa: PLC0415 - English needs none of it

    with file.open("rb") as source:
        return pofile.read_po(source, locale=language)


@cache
def catalog(language: str) -> gettext.NullTranslations:
    """Return the translations of a language; a sentence that it lacks stays English.

    The PO file is compiled in memory, once a process, so that it is all that a language is.
    """
    messages = read(language)
    if messages is None:
        return gettext.NullTranslations()
    from babel.messages import mofile  # noqa: PLC0415 - as above

    compiled = io.BytesIO()
    mofile.write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


@cache
def script_words(language: str, folder: str = "") -> Mapping[str, str]:
    """Return the sentences of the page's scripts by their English; read from the same file.

    Args:
        language: whose sentences.
        folder: leave out those that no script below this folder of the package says.
    """
    return MappingProxyType(
        {
            str(message.id): str(message.string)
            for message in read(language) or ()
            if message.string
            and any(
                name.endswith(".js") and name.startswith(folder) for name, _ in message.locations
            )
        }
    )


@cache
def signs(language: str) -> tuple[str, str]:
    """Return the decimal point of a language and what it groups thousands with."""
    if language == ENGLISH:
        return ".", ","
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - as above

    try:
        locale = Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        return ".", ","
    latin = locale.number_symbols.get("latn", {})
    return latin.get("decimal", "."), latin.get("group", ",")


def is_unspaced(language: str) -> bool:
    """Return whether words run together in a language, as in Chinese, or with particles in Korean.

    A line may break between any two signs then, and a word is not found by its edges.

    >>> is_unspaced("zh_CN"), is_unspaced("de")
    (True, False)
    """
    return language.partition("_")[0] in {"zh", "ja", "ko"}


@cache
def own_name(language: str) -> str:
    """Return what a language calls itself: ``"简体中文"``."""
    if language in _OWN_NAMES:
        return _OWN_NAMES[language]
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - as above

    try:
        locale = Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        return language
    return (locale.get_language_name(language) or language).capitalize()
