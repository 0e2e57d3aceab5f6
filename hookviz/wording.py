"""Numbers, shapes and sizes as people write them."""

from collections.abc import Sequence
from math import isfinite, isnan

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def times(shape: Sequence[int]) -> str:
    """A shape as people write it: ``"64×112×112"``."""
    return "×".join(map(str, shape))


def number(value: float) -> str:
    """`value` as people write it, to 3 significant digits: ``−1.32``, ``12,300``, ``4.1×10⁻⁵``."""
    if not isfinite(value):
        return "NaN" if isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.2e}".split("e")
    power = int(exponent)
    if -4 < power < 6:
        text = f"{float(f'{mantissa}e{exponent}'):,.{max(0, 2 - power)}f}"
    else:
        text = f"{mantissa}×10{str(power).translate(_SUPERSCRIPT)}"
    return f"−{text}" if value < 0 else text
