"""Plain text and JSON for the terminal."""

import json
import math
from collections.abc import Collection, Sequence
from typing import Any

import click


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> str:
    """Rows under their headings in columns two spaces apart; the columns `right` end flush."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def echo_json(data: Any) -> None:
    """Print `data` as JSON; NaN and infinities, which JSON does not have, become null."""
    click.echo(json.dumps(_finite(data), indent=2, ensure_ascii=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data
