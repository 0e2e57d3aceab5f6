"""The atlases in the box, one for each network in the box."""

from pathlib import Path

from hookviz.settings import ASSETS

FOLDER = ASSETS / "atlases"
"""Where they are, with the drawings that they are of; their photographs are the samples."""


def shipped_atlas(model: str) -> Path | None:
    """The atlas that ships for a model, by its catalog name; None where none does."""
    path = FOLDER / f"{model}.atlas"
    return path if "/" not in model and path.is_dir() else None
