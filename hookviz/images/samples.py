"""List the pictures that ship with HookViz."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hookviz.settings import ASSETS


@dataclass(frozen=True, slots=True)
class Sample:
    """A picture that ships with HookViz.

    Attributes:
        name: short and stable, for links.
        title: what to call it on the screen.
        alt: what it shows, in a sentence.
        kind: ``"photo"`` or ``"drawn"``.
        path: the file.
    """

    name: str
    title: str
    alt: str
    kind: str
    path: Path


@cache
def samples() -> tuple[Sample, ...]:
    """Return the pictures that ship with HookViz; the first is the one to start with."""
    folder = ASSETS / "samples"
    listed = json.loads((folder / "samples.json").read_text("utf-8"))
    return tuple(
        Sample(
            name=Path(item["file"]).stem,
            title=item["title"],
            alt=item["alt"],
            kind=item["kind"],
            path=folder / item["file"],
        )
        for item in listed
    )
