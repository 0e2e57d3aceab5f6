"""Declare a parameter for channels with what each counts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookviz.language.saying import mark, say
from hookviz.lenses.contract.parameters import Channels, LensSubject

_MOST = 1000  # that are asked for in one go
_WANTED = mark('numbers with weights such as "12, 80:-1", a weight of 1 where none is given')
_PART = re.compile(r"\s*(\d{1,6})\s*(?::\s*([+-]?\d{0,9}(?:\.\d{1,9})?))?\s*", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights(Channels):
    """Channels or classes by number, with weights: ``"12, 80:-1"`` or a mapping; none by default.

    Whether there are such is for the lens to check.
    """

    name: str = "weights"
    label: str = mark("Weights")
    example: str = "12, 80:-1"

    def resolve(self, value: Any, subject: LensSubject) -> tuple[tuple[int, float], ...]:  # type: ignore[override]
        """Return pairs of number and weight in the order of the numbers, each number once.

        Raises:
            SettingError: the value is no list of weights, or names too many.
        """
        if value is None or value == "":
            return ()
        if isinstance(value, Mapping):
            return self.resolve(", ".join(f"{key}:{each}" for key, each in value.items()), subject)
        if isinstance(value, tuple | list):  # as it was resolved before
            return self.resolve(", ".join(f"{key}:{each}" for key, each in value), subject)
        parts = str(value).split(",")
        weights: dict[int, float] = {}
        for part in parts:
            match = _PART.fullmatch(part)
            if match is None or len(parts) > _MOST or int(match[1]) in weights:
                raise self.refuse(value, say(_WANTED))
            try:
                weights[int(match[1])] = 1.0 if match[2] is None else float(match[2])
            except ValueError:
                raise self.refuse(value, say(_WANTED)) from None
        return tuple(sorted(weights.items()))
