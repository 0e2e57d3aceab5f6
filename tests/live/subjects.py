"""What tests of streams show, and the frames that they send."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import hookviz
from hookviz.explorer.rendering import Look
from hookviz.live.frames import Subject
from hookviz.types import Model
from tests.pictures import encoded, picture

STEP = "stem.first.conv"
DRAWN: dict[str, Any] = {
    "sort": "index",
    "top": None,
    "scale": "balanced",
    "colormap": "inferno",
    "signed_colormap": "RdBu_r",
    "of_difference": "RdBu_r",
}


def subject_of(model: Model, **chosen: Any) -> Subject:
    """A model's first layer as the app draws it, or what is chosen."""

    def use_model() -> AbstractContextManager[Model]:
        return nullcontext(model)

    return Subject(
        **{
            "use_model": use_model,
            "size": None,
            "whole": False,
            "step": STEP,
            "look": Look(
                **DRAWN | {name: chosen.pop(name) for name in DRAWN.keys() & chosen.keys()}
            ),
            **chosen,
        }
    )


def frame(seed: int = 0, width: int = 172, height: int = 128) -> bytes:
    """A JPEG of the size that the page sends."""
    return encoded(picture(seed, width, height), "JPEG", quality=80)


def shapesnet() -> Model:
    """The model of most tests."""
    return hookviz.load_model("shapesnet")
