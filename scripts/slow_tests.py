"""Refuse tests that take too long: `make check` fails for one above 60 s, unless it is a sweep.

It reads tests/durations.json, which `make durations` writes. One above 30 s says why, by the mark
``slow``. What is set up before a test does not count: the one that comes first sets up for others.

    python -m scripts.slow_tests --keep     writes that file, of what ran here last
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

from tests.running_order import KEPT, MADE, MOST, REASON_ABOVE, condensed, kept


def complaints(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """List what is wrong with tests, a line each, by their seconds and marks.

    Example:
        >>> complaints({"a.py::b": {"longest": 71.0}, "a.py::c": {"longest": 71.0, "sweep": True}})
        ['a.py::b takes 71 s: make it quicker than 60 s, or mark it as a sweep']
    """
    found = []
    for test, row in rows.items():
        seconds = row["longest"]
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
    if "--keep" in sys.argv:
        rows = condensed(json.loads(MADE.read_text("utf-8")))
        KEPT.write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n", "utf-8")
    if found := complaints(kept()):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
