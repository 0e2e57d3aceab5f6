"""Translate the names of classes, by a language's own file of them.

A language's names are a file of their own, ``class_names/zh_CN.po``, which it can do without: each
entry has the class's number as its context, and its English name. Both must fit, since a number
means another class with other weights, and a name can: *crane* is a bird there and a machine here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from hookviz.language.catalogs import CLASS_NAMES, ENGLISH, read
from hookviz.language.saying import say
from hookviz.language.speaking import current


def class_name(index: int, name: str) -> str:
    """Return the class's name in the language that is spoken; `name` if that has none of its own.

    Args:
        index: the class's number among those that the weights know.
        name: what the weights call it.

    >>> from hookviz.language.speaking import speaking
    >>> with speaking("zh_CN"):
    ...     class_name(0, "circle"), class_name(1, "circle")
    ('圆形', 'circle')
    """
    language = current()
    return name if language == ENGLISH else _names(language).get((str(index), name), name)


def class_label(index: int, names: Sequence[str]) -> str:
    """Return the label of a class of weights with those `names`, which may be none, or too few."""
    return (
        class_name(index, names[index]) if index < len(names) else say("class {index}", index=index)
    )


def listed_label(index: int, names: Sequence[str]) -> str:
    """Return the label for a list in which people look for a class: with its English name.

    >>> from hookviz.language.speaking import speaking
    >>> with speaking("zh_CN"):
    ...     listed_label(0, ("circle",))
    '圆形 · circle'
    """
    said = class_label(index, names)
    return " · ".join(dict.fromkeys((said, *names[index : index + 1])))


def names_in_links(names: Sequence[str], count: int) -> list[str]:
    """Return what links call each of `count` classes: its English name, which is there once.

    >>> names_in_links(("crane", "cat", "crane"), 4)
    ['crane (0)', 'cat', 'crane (2)', 'class 3']
    """
    labels = [*names[:count], *(f"class {index}" for index in range(len(names), count))]
    times = Counter(labels)
    return [f"{label} ({at})" if times[label] > 1 else label for at, label in enumerate(labels)]


@cache
def _names(language: str) -> Mapping[tuple[str, str], str]:
    """Return the names that a language has of its own, by number and English name."""
    return MappingProxyType(
        {
            (message.context, str(message.id)): str(message.string)
            for message in read(language, CLASS_NAMES) or ()
            if message.context and message.string
        }
    )
