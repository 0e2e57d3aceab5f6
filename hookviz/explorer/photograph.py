"""Answer with the photograph, and the parts of it that the network and each cell of a map see."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.dimensions import middle_slice, slices
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.explaining.layers.layer_description import facts
from hookviz.explaining.receptive_fields.extent import ALL, WINDOWS
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.explorer.encoding import MOST_VALUES
from hookviz.explorer.glossary import explained
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


_Shares = list[Any]


def answer_field(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the layer's facts in a sentence, and where on the photograph each cell looks.

    It takes a while for a network that is seen first.

    Raises:
        HookVizError: the network runs no layer that puts out maps.
    """
    looked = resolve(subject, view)
    fields = subject.fields()
    field = fields.get(str(looked.step))
    numbers = {layer.name: layer.index + 1 for layer in subject.trace.convs}
    is_conv = looked.layer.name in numbers
    if not is_conv:
        numbers = {layer.name: layer.index + 1 for layer in subject.trace.shown}
    sentence = say(
        "{kind} {number} of {layer_count} · {facts}",
        kind=say("conv layer") if is_conv else say("layer"),
        number=numbers.get(looked.layer.name, looked.layer.index + 1),
        layer_count=len(numbers),  # be some of them offered or all
        facts=facts(looked.layer, fields.get(looked.layer.name)),
    )
    return Answer(
        {
            "facts": explained(sentence),
            "says": [] if subject.model_input.crop is None else explained(_says(field)),
            "size": list(field.size) if field is not None and field.size is not None else None,
            **_places(subject, field),
        }
    )


def _says(field: ReceptiveField | None) -> str:
    """Say what is framed on the photograph, if anything is."""
    if field is None:
        return say("on the image")
    size = (
        say("{height}×{width} px", height=field.size[0], width=field.size[1])
        if field.size
        else say("all of the image")
    )
    if field.mixed == ALL and field.size is None:
        size = say("all of the image, for attention mixes all patches")
    elif field.mixed == WINDOWS:
        size = say("at most {size}, by attention in windows", size=size)
    return say("framed: what the cell sees, {size}", size=size)


def _places(subject: Subject, field: ReceptiveField | None) -> dict[str, _Shares | None]:
    """Return where each cell looks, as shares of the whole image: its sides, or else its boxes.

    Rows have top and bottom where all cells of a row look at the same rows of the image, and so
    columns; else each cell has a box of its own, unless there are too many to send.
    """
    crop = subject.model_input.crop
    if field is None or crop is None:
        return {"rows": None, "columns": None, "boxes": None}
    top, left, bottom, right = field.boxes
    height, width = subject.image.height, subject.image.width
    down = (crop.bottom - crop.top) / crop.height / height
    across = (crop.right - crop.left) / crop.width / width
    sides = [crop.top / height + each * down for each in (top, bottom)]
    ends = [crop.left / width + each * across for each in (left, right)]
    if all((each == each[:, :1]).all() for each in (top, bottom)) and all(
        (each == each[:1]).all() for each in (left, right)
    ):
        return {
            "rows": _listed(*(each[:, 0] for each in sides)),
            "columns": _listed(*(each[0] for each in ends)),
            "boxes": None,
        }
    boxes = None
    if top.size <= MOST_VALUES:
        boxes = _listed(sides[0], ends[0], sides[1], ends[1])
    return {"rows": None, "columns": None, "boxes": boxes}


def _listed(*edges: NDArray[Any]) -> _Shares:
    """Return the edges of each place together, as numbers for JSON."""
    shares: _Shares = np.stack(edges, axis=-1).tolist()
    return shares
