"""Answer with the image: its photograph, the parts that cells see, and its likeliest classes.

`answer_head` is for a client without a page around it: the network's input, its name, its classes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.dimensions import middle_slice, slices
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg, small_png
from hookviz.explaining.layers.layer_description import facts
from hookviz.explaining.receptive_fields.extent import ALL, WINDOWS
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.explorer.encoding import MOST_VALUES
from hookviz.explorer.glossary import explained
from hookviz.explorer.layers import captured, resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.images.reading import decode_frames
from hookviz.language.saying import say, sentences
from hookviz.outputs.answer import no_classes
from hookviz.types import Capture

_SIDE_PX = 480  # of its longer side, twice its size on a laptop's screen
_QUALITY = 90
_INPUT_PX = 152  # side of the network's input, twice its size on the screen
_CLASSES = 5


def answer_photograph(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the whole photograph as a JPEG, and where on it the network's input lies.

    Of an animation it is the middle frame of those behind the maps that are shown. The crop is in
    shares of the image, and can reach past it, as `hookviz.types.Crop` says.

    Raises:
        HookVizError: a frame can't be decoded.
    """
    image, crop = subject.image, subject.model_input.crop
    number = _frame(subject, view)
    key = ("photograph", image.digest, number, "jpeg")
    jpeg: tuple[bytes, int, int] | None = subject.cache.get(key)
    if jpeg is None:
        moments = (
            (image,) if number is None else decode_frames(image, len(subject.model_input.frames))
        )
        small = shrunk(moments[number or 0].pixels, _SIDE_PX)
        jpeg = encode_jpeg(small, quality=_QUALITY), small.shape[1], small.shape[0]
        subject.cache.put(key, jpeg, len(jpeg[0]))
    data, width, height = jpeg
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
    """Return the number of the clip's frame that a view shows; None of a still image."""
    count = len(subject.model_input.frames)
    if not count:
        return None
    resolved = resolve(subject, view)
    shape = resolved.layer.output_shape
    frame = middle_slice(shape, resolved.frame)
    return count // 2 if frame is None else (2 * frame + 1) * count // (2 * slices(shape))


_Shares = list[Any]


def answer_field(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the layer's facts in a sentence, and where on the photograph each cell looks.

    The first answer about a network takes a while.

    Raises:
        HookVizError: the network runs no layer that puts out maps.
    """
    resolved = resolve(subject, view)
    fields = subject.fields()
    field = fields.get(str(resolved.step))
    numbers = {layer.name: layer.index + 1 for layer in subject.trace.convs}
    is_conv = resolved.layer.name in numbers
    if not is_conv:
        numbers = {layer.name: layer.index + 1 for layer in subject.trace.shown}
    sentence = say(
        "{kind} {number} of {layer_count} · {facts}",
        kind=say("conv layer") if is_conv else say("layer"),
        number=numbers.get(resolved.layer.name, resolved.layer.index + 1),
        layer_count=len(numbers),  # be some of them offered or all
        facts=facts(resolved.layer, fields.get(resolved.layer.name)),
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
    """Return the sentence about the frame on the photograph."""
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


def answer_head(subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report) -> Answer:
    """Return the network's input as a small PNG, and its likeliest classes with shares.

    Raises:
        HookVizError: the network shows no layer, or the pass can't be run.
    """
    capture = captured(subject, resolve(subject, view))
    picture = capture.model_input.picture
    data = b"" if picture is None else small_png(picture, _INPUT_PX)
    return Answer(
        {
            "alt": say("What the model sees: {alt}", alt=subject.alt or subject.image_title),
            "image": subject.image_title,
            "model": subject.model_title or subject.model.title,
            "classes": classes_of(capture),
            "note": _note(subject, capture),
        },
        data,
    )


def classes_of(capture: Capture) -> list[dict[str, Any]]:
    """Return the classes that an image is likeliest of, with their numbers and shares."""
    return [
        {
            "name": each.name,
            "number": each.number,
            "share": float(f"{each.share:.4g}"),
            "says": each.text,
        }
        for each in capture.top(_CLASSES)
    ]


def _note(subject: Subject, capture: Capture) -> str:
    """Return a warning about the network and its classes; empty without any."""
    if capture.answer is None:
        return sentences(say("This network puts out no class scores."), subject.model.note)
    if not capture.answer.has_classes:
        return sentences(no_classes(len(capture.answer.scores)), subject.model.note)
    if subject.model.weights.partition(",")[0] == "random":  # with or without silent channels
        return say("random weights: these predictions mean nothing")
    return sentences(capture.answer.reading.question, subject.model.note)
