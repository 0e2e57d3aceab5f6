"""What a stream of frames shows."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hookviz.language.catalogs import ENGLISH
from hookviz.types import Model


@dataclass(frozen=True, slots=True)
class Subject:
    """What a stream shows. Replaced as a whole when a person chooses otherwise; it follows at once.

    Attributes:
        use_model: borrows the model for a block; called in other threads than the page's.
        size: side of the input in pixels, as `hookviz.prepare` has it; None for the model's own.
        whole: whether the input is the whole frame in place of its centre crop.
        step: the `Address`, as text, whose output is drawn.
        sort: as `make_grid` has it.
        top: as `make_grid` has it.
        scale: as `make_grid` has it; nothing automatic.
        colormap: of a layer that is nowhere below zero, as `make_grid` has it.
        signed_colormap: of maps that have values below zero; None for `colormap`.
        language: what is said of the frames is said in it.
    """

    use_model: Callable[[], AbstractContextManager[Model]]
    size: int | None
    whole: bool
    step: str
    sort: str
    top: int | None
    scale: str
    colormap: str
    signed_colormap: str | None = None
    language: str = ENGLISH
