"""Answer with the photograph, as large as it is shown, and the part of it that the network saw."""

from collections.abc import Mapping
from typing import Any

from hookviz.drawing.dimensions import middle_slice, slices
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.explorer.layers import resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.images.reading import decode_frames
from hookviz.language.saying import say

_SIDE = 480  # pixels of its longer side, twice what it takes on a laptop's screen
_QUALITY = 90


def answer_photograph(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the whole photograph as a JPEG, and where on it the network's input lies.

    Of an animation it is the frame in the middle of those that stand behind what is shown. The crop
    is in shares of the image, and can reach past it, as `hookviz.types.Crop` says.

    Raises:
        HookVizError: a frame can't be decoded.
    """
    image, crop = subject.image, subject.model_input.crop
    number = _frame(subject, view)
    key = ("photograph", image.digest, number, "jpeg")
    kept: tuple[bytes, int, int] | None = subject.cache.get(key)
    if kept is None:
        moments = (
            (image,) if number is None else decode_frames(image, len(subject.model_input.frames))
        )
        small = shrunk(moments[number or 0].pixels, _SIDE)
        kept = encode_jpeg(small, quality=_QUALITY), small.shape[1], small.shape[0]
        subject.cache.put(key, kept, len(kept[0]))
    data, width, height = kept
    facts = {
        "alt": subject.alt,
        "width": width,
        "height": height,
        "crop": None,
        "missing": say("Where this lies on the image is not known."),
    }
    if crop is not None:
        facts["missing"] = ""
        facts["crop"] = {
            "top": crop.top / image.height,
            "left": crop.left / image.width,
            "bottom": crop.bottom / image.height,
            "right": crop.right / image.width,
        }
    return Answer(facts, data)


def _frame(subject: Subject, view: View) -> int | None:
    """Return which frame of the clip a view shows; None of what does not move."""
    count = len(subject.model_input.frames)
    if not count:
        return None
    looked = resolve(subject, view)
    shape = looked.layer.output_shape
    shown = middle_slice(shape, looked.frame)
    return count // 2 if shown is None else (2 * shown + 1) * count // (2 * slices(shape))
