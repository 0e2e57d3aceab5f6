"""Say sentences with facts in them in the language that is spoken.

A sentence is written once, in English, whole, with a name in braces for each fact: whoever
translates it sees all of it, and can put the facts in another order.
"""

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from numbers import Real
from string import Formatter
from typing import Any

from hookviz.language.catalogs import catalog, signs
from hookviz.language.speaking import current


def mark(text: str) -> str:
    """Return `text` as it stands, marked for translation: it is given to `say` later.

    For what is written down before anybody reads it: the constant of a module, a declaration.
    """
    return text


def say(text: str, /, **facts: Any) -> str:
    """Return `text` in the language that is spoken, with its facts.

    Args:
        text: the English sentence, a literal, or one that was given to `mark`.
        facts: what stands for ``{name}`` in it, formatted as ``str.format`` does; numbers are
            written as the language writes them.

    >>> say("{count:,} channels of {layer}", count=1234, layer="conv1")
    '1,234 channels of conv1'
    """
    if not text:  # for which gettext has the catalog's own header
        return text
    language = current()
    said = catalog(language).gettext(text)
    return _with_facts(said, facts) if facts else said


def say_count(one: str, many: str, count: int, /, **facts: Any) -> str:
    """Return `one` or `many` in the language's form for `count`, with ``{count}`` among the facts.

    >>> say_count("{count} map", "{count:,} maps", 1), say_count("{count} map", "{count} maps", 2)
    ('1 map', '2 maps')
    """
    said = catalog(current()).ngettext(one, many, count)
    return _with_facts(said, {"count": count, **facts})


def _with_facts(said: str, facts: Mapping[str, Any]) -> str:
    """Fill the facts in; a Chinese one stands close to the Chinese beside it."""

    def chinese(name: str, end: slice) -> bool:
        return bool(_CHINESE.fullmatch(str(facts.get(name, ""))[end]))

    if said.isascii():  # English nearly always, on every click
        return _FORMATTER.vformat(said, (), facts)
    said = _FIELD_AFTER.sub(lambda at: at[0][chinese(at[1], slice(1)) :], said)
    said = _FIELD_BEFORE.sub(
        lambda at: at[0][:-1] if chinese(at[1], slice(-1, None)) else at[0], said
    )
    return _FORMATTER.vformat(said, (), facts)


def closed_up(written: str) -> str:
    """Return HTML or text without the blanks between two Chinese characters.

    Chinese has none. A translation needs them where a fact may turn out to be in Latin letters.

    >>> closed_up("把它认作 <strong>星形</strong> 的"), closed_up("认作 star 的")
    ('把它认作<strong>星形</strong>的', '认作 star 的')
    """
    return _BLANK.sub(r"\1\2", written)


_HAN = "[\u4e00-\u9fff]"
_CHINESE = re.compile(_HAN)
_BLANK = re.compile(rf"(?<={_HAN})((?:</?strong>)?) ((?:</?strong>)?)(?={_HAN})")
_FIELD_AFTER = re.compile(rf"(?<={_HAN}) \{{(\w+)\}}")
_FIELD_BEFORE = re.compile(rf"\{{(\w+)\}} (?={_HAN})")


def joined(names: Iterable[str]) -> str:
    """Write names one after the other, as the language separates them: ``"conv1, relu"``."""
    parts = list(names) or [""]
    return reduce(lambda names, name: say("{names}, {name}", names=names, name=name), parts)


def sentences(*texts: str) -> str:
    """Write sentences one after the other, with what the language has between them.

    Empty ones are left out.
    """
    parts = list(filter(None, texts)) or [""]
    return reduce(lambda text, more: say("{text} {sentence}", text=text, sentence=more), parts)


class _InTheLanguage(Formatter):
    """``str.format`` with a language's decimal point and thousands separator."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        written = super().format_field(value, format_spec)
        return written if not isinstance(value, Real) else localised(written)


_FORMATTER = _InTheLanguage()


def localised(written: str) -> str:
    """Return a number written the English way as the language writes it: ``"12,300.5"``."""
    point, group = signs(current())
    if (point, group) == (".", ","):
        return written
    return written.translate({ord("."): point, ord(","): group})
