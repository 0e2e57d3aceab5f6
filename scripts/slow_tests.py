"""Refuse tests that take too long: `make check` fails for one above 30 s, unless it is a sweep.

It reads tests/durations.json, which `make durations` writes. One above 10 s says why, by the mark
``slow``. What is set up before a test does not count: the one that comes first sets up for others.
"""

import sys
from collections.abc import Mapping
from typing import Any

from tests.running_order import MOST, REASON_ABOVE, kept


def complaints(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """List what is wrong with tests, a line each, by their seconds and marks.

    Example:
        >>> complaints({"a.py::b": {"alone": 41.0}, "a.py::c": {"alone": 41.0, "sweep": True}})
        ['a.py::b takes 41 s: make it quicker than 30 s, or mark it as a sweep']
    """
    found = []
    for test, row in rows.items():
        seconds = row["alone"]
        if seconds > MOST and not row.get("sweep"):
            found.append(
                f"{test} takes {seconds:.0f} s: make it quicker than {MOST:.0f} s, "
                "or mark it as a sweep"
            )
        elif seconds > REASON_ABOVE and not {"slow", "sweep"} & row.keys():
            found.append(f"{test} takes {seconds:.0f} s: say why, by @pytest.mark.slow(reason)")
    return found


def main() -> None:
    """Print what is wrong and fail, where something is."""
    if found := complaints(kept()):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
