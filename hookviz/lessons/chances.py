"""Write probabilities so that small ones keep two digits, and tell a ratio only if it shows."""

from hookviz.language.saying import localised, say

_LEAST = 1e-6  # below which a probability is only said to be smaller
_DIGITS = (3, 2, 1)


def chance(share: float) -> str:
    """Write a probability with at least two digits: ``"98.7 %"``, ``"0.14 %"``, ``"0.0021 %"``."""
    if share < _LEAST:
        return say("< {share} %", share=localised(f"{100 * _LEAST:.4f}"))
    if share < 1 and _shown(share) >= 1:
        return say("> {share} %", share=localised("99.9"))
    return say("{share} %", share=localised(_text(share)))


def ratio(larger: float, smaller: float) -> str:
    """Write how many times as large one probability is as another, as `chance` shows the two.

    With as many digits, three at most, as both the probabilities and what is shown of them bear
    out; empty where none is, or where one is too small or too near to one to be shown.
    """
    if smaller < _LEAST or (larger < 1 and _shown(larger) >= 1):
        return ""
    true, seen = larger / smaller, _shown(larger) / _shown(smaller)
    for digits in _DIGITS:
        written = f"{true:.{digits - 1}e}"
        if written == f"{seen:.{digits - 1}e}":
            number = float(written)
            power = int(written.partition("e")[2])
            return localised(f"{number:,.{max(0, digits - 1 - power)}f}")
    return ""


def _text(share: float) -> str:
    """Return a share in percent: with one decimal, or where it is small with two digits."""
    percent = 100 * share
    if percent >= 1:
        return f"{percent:.1f}"
    power = int(f"{percent:.1e}".partition("e")[2])
    return f"{percent:.{1 - power}f}"


def _shown(share: float) -> float:
    return float(_text(share)) / 100
