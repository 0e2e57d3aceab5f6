"""Read which class of a network a person means, by its number or its name."""

from collections.abc import Sequence
from typing import Any

from hookviz.errors import SettingError, nearest_names, shorten
from hookviz.language.saying import say


def class_number(
    value: Any, names: Sequence[str], count: int, title: str, *, parameter: str = "target"
) -> int:
    """Return the number of a class.

    Args:
        value: the number, also as text, or the name.
        names: of the network's classes, as far as it has some.
        count: how many scores the network puts out.
        title: what the network is called.
        parameter: what the choice is called, for the message.

    Raises:
        SettingError: the network has no such class; the nearest name is named.

    >>> from hookviz.explaining.named_class import class_number
    >>> class_number("star", ("circle", "star"), 2, "ours"), class_number("0", (), 2, "ours")
    (1, 0)
    """
    if isinstance(value, str) and not value.isdecimal():
        if value in names:
            return list(names).index(value)
        near = nearest_names(value, names)
        hint = say(" Did you mean {names}?", names=" or ".join(map(repr, near))) if near else ""
        raise SettingError(
            say(
                "{model} knows no class {value!r}.{hint}",
                model=title,
                value=shorten(value),
                hint=hint,
            )
        )
    try:
        number = -1 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):  # Python reads up to 4,300 digits
        number = -1
    if not 0 <= number < count:
        raise SettingError(
            say(
                "{name}={value} is not {expected}.",
                name=parameter,
                value=shorten(repr(value)),
                expected=say("a class of {model}: 0 to {last}", model=title, last=count - 1),
            )
        )
    return number
