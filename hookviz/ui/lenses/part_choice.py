"""Let a person ask a lens about a part of an answer: a region, a box, or another image's likeness.

What can be asked about depends on what the network answers with; classes alone need nothing.
"""

from typing import Any

import numpy as np
import streamlit as st
import torch
from torch import Tensor
from torchvision.utils import draw_bounding_boxes

from hookviz.errors import HookVizError
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.regions import (
    LIKE,
    NOTHING,
    REGION,
    REGION_CHOICE,
    kind_of_answer,
    parts_of_answer,
    restrict_to_region,
)
from hookviz.outputs.answer import BOXES, EMBEDDING, MAPS
from hookviz.types import Pixels
from hookviz.ui.lenses.lens_widgets import pick_region, scores_turn
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.recent_images import read_recent, recent_images
from hookviz.ui.serving import resources

_BOXES = 12  # that are drawn, the surest
_SIDE = 160  # pixels on the screen: on a phone the answer stands below


def offered_part(lens: Lens, subject: Subject) -> str:
    """Return `REGION` or `LIKE` where a lens can be asked about that of this answer, else empty."""
    parts = parts_of_answer(lens)
    if not parts or len(subject.shape) != 3:
        return ""
    try:
        with scores_turn(subject):
            kind = kind_of_answer(subject)
    except HookVizError:
        return ""  # the lens itself says what is wrong
    part = {MAPS: REGION, BOXES: REGION, EMBEDDING: LIKE}.get(kind, "")
    return part if part in parts else ""


def within_link(subject: Subject) -> Subject:
    """Return the subject whose classes are those within the link's region, where there is one."""
    try:
        region = st.query_params.get(REGION)
        if region is None:
            return subject
        asked, _ = restrict_to_region(subject, region)
        with scores_turn(asked):
            kind_of_answer(asked)  # or the choice of a class would wait for it, and leave a gap
    except HookVizError:
        return subject  # the lens itself says what is wrong
    return asked


def pick_part(part: str, subject: Subject) -> dict[str, Any]:
    """Let a person choose the part; nothing chosen is the whole answer."""
    return _pick_region(subject) if part == REGION else _pick_like(subject)


def _pick_region(subject: Subject) -> dict[str, Any]:
    boxes = _surest(subject.answer.boxes)
    text = pick_region(
        REGION_CHOICE,
        REGION,
        subject,
        start=NOTHING,
        draw=lambda picture: _with_boxes(picture, boxes, subject),
        boxes=boxes[:, :4].tolist(),
    )
    if subject.answer.boxes is None:
        st.caption(say("Mark a region to ask about a class there alone."))
    else:
        st.caption(say("Click a box to ask about it; of a region it is the one that fits best."))
    return {} if text == NOTHING else {REGION: text}


def _surest(boxes: Tensor | None) -> Tensor:
    """Return a detector's surest boxes, within the input, ``(M, 6)``."""
    if boxes is None:
        return torch.zeros(0, 6)
    surest = boxes[boxes[:, 5].argsort(descending=True)[:_BOXES]]
    return torch.cat([surest[:, :4].clamp(0, 1), surest[:, 4:]], 1)


def _with_boxes(picture: Pixels, boxes: Tensor, subject: Subject) -> Pixels:
    """Draw boxes on the picture that the network sees, ``(H, W, 3)``."""
    if not len(boxes):
        return picture
    height, width, _ = picture.shape
    drawn = draw_bounding_boxes(
        torch.from_numpy(np.array(picture)).permute(2, 0, 1),
        boxes[:, :4] * torch.tensor([width, height, width, height]),
        [
            f"{subject.label(int(number))} {subject.answer.text(float(score))}"
            for number, score in boxes[:, 4:]
        ],
        colors="yellow",
        label_colors="black",
        fill_labels=True,
        width=max(1, round(min(height, width) / 150)),
    )
    return np.ascontiguousarray(drawn.permute(1, 2, 0).numpy())


def _pick_like(subject: Subject) -> dict[str, Any]:
    known = {sample.name: sample for sample in samples()}
    recent = {each.digest: each for each in recent_images()}
    titles = {name: say(sample.title) for name, sample in known.items()}
    titles |= {
        digest: say("Your image {number}", number=number)
        for number, digest in enumerate(recent, start=1)
    }
    chosen = linked_choice(
        st.selectbox,
        say("Similar to"),
        titles,
        LIKE,
        first=None,
        index=None,
        placeholder=say("another image"),
        help=say("Ask how near this image's vector is to the other one's."),
    )
    if chosen is None:
        return {}
    is_own = chosen in recent
    other = read_recent(recent[chosen]) if is_own else resources.decode_sample(known[chosen])
    st.image(other.pixels, width=_SIDE)
    return {LIKE: resources.prepare(subject.model, other, size=None, whole=False)}
