"""Show the widgets of a lens: one for each parameter, and one for the part of an answer.

The part is a region, a box or another image's likeness, by the kind of the network's answer.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor
from torchvision.utils import draw_bounding_boxes

from hookviz.capturing import engine
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.pictures import encode_png
from hookviz.errors import HookVizError, ImageError
from hookviz.explorer.layers import not_here
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.language.naming import listed_label, names_in_links
from hookviz.language.saying import mark, say
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract import regions
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import Parameter
from hookviz.lenses.contract.regions import (
    LIKE,
    REGION,
    REGION_CHOICE,
    kind_of_answer,
    parts_of_answer,
    restrict_to_region,
)
from hookviz.lenses.contract.shared_choices import AttendingLayer
from hookviz.markup import data_url
from hookviz.outputs.answer import BOXES, EMBEDDING, MAPS
from hookviz.serving.memory_reservations import pass_need
from hookviz.settings import settings
from hookviz.types import InputImage, LayerInfo, Pixels
from hookviz.ui.components.files import mount
from hookviz.ui.lenses.lens_choice import layers_at_side
from hookviz.ui.link import update_link, word, words
from hookviz.ui.recent_images import read_recent, recent_images
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import TARGET, linked_choice, warn

_IN_A_ROW = 4  # settings; further ones are folded away
_LIKELIEST = 5  # classes that are listed first, with their probabilities
_MOST_LETTERS = 20_000  # of a region from the browser; a mask of 32 × 32 cells has far fewer


def _mark_region(
    picture: Pixels,
    region: str,
    label: str,
    key: str,
    on_mark: Callable[[str], None],
    *,
    boxes: Sequence[Sequence[float]] = (),
) -> None:
    """Show a picture with a region marked.

    Args:
        picture: RGB uint8, ``(H, W, 3)``.
        region: the marked region's text, in the format of `hookviz.lenses.contract.regions`.
        label: the control's name.
        key: of the component in Streamlit's state.
        on_mark: gets the text of a newly marked region, before the next run of the page.
        boxes: left, top, right and bottom of each as shares 0…1; a click in one marks it.
    """

    def marked(sent: object) -> None:
        match sent:
            case str(text) if len(text) <= _MOST_LETTERS:
                on_mark(text)

    facts = {
        "image": data_url(encode_png(picture)),
        "size": [picture.shape[1], picture.shape[0]],
        "region": region,
        "label": label,
        "boxes": boxes,
    }
    mount("region", key, facts, marked=marked)


def pick_parameters(lens: Lens, subject: Subject, layer: LayerInfo) -> dict[str, Any]:
    """Show the settings of a lens and return their values; `layer` is chosen at the side."""
    at_side = layers_at_side(lens)
    chosen: dict[str, Any] = {parameter.name: layer.name for parameter in at_side}
    not_listed = [*at_side, *region_parameters(lens)]
    listed = [each for each in lens.parameters if each not in not_listed]
    above = st.container()
    row = st.container(horizontal=True, vertical_alignment="bottom", key="hv-settings", gap="small")
    more: DeltaGenerator | None = None
    free = _IN_A_ROW
    for parameter in listed:
        if not parameter.matters(chosen):
            continue
        container = row
        if parameter.rare or isinstance(parameter, kinds.MoreImages) or not free:
            more = container = more or row.popover(say("More settings"), icon=":material/tune:")
        else:
            free -= 1
        widget = next(_WIDGETS[kind] for kind in type(parameter).__mro__ if kind in _WIDGETS)
        with container:
            chosen[parameter.name] = widget(parameter, f"{lens.slug}-{parameter.name}", subject)
    in_link = st.query_params.get(TARGET)
    if in_link and chosen.get(TARGET, in_link) is None:
        with above:
            warn(not_here(mark("class"), in_link, ()))
    for _ in range(free + (more is None)):
        row.empty()  # or a widget of the lens before would stand there until the run is over
    return chosen


def region_parameters(lens: Lens) -> list[regions.RegionChoice]:
    """Return the parameters that are marked on the picture beside the lens's result."""
    return [each for each in lens.parameters if isinstance(each, regions.RegionChoice)]


def pick_region_parameters(lens: Lens, subject: Subject) -> dict[str, Any]:
    """Show the picture of each of `region_parameters`, and return the marked regions."""
    return {
        parameter.name: _pick_region(
            parameter, f"{lens.slug}-{parameter.name}", subject, default=parameter.default
        )
        for parameter in region_parameters(lens)
    }


def _pick_region(
    parameter: regions.RegionChoice,
    key: str,
    subject: Subject,
    *,
    default: str,
    draw: Callable[[Pixels], Pixels] = lambda picture: picture,
    boxes: Sequence[Sequence[float]] = (),
) -> str:
    """Show the network's input, in which a region can be marked, and return that region's text.

    Args:
        parameter: the region.
        key: of the region in the link.
        subject: whose input is shown.
        default: the region without a word in the link.
        draw: draws on the picture first.
        boxes: the same as in `_mark_region`.
    """
    text = st.query_params.get(key, default)
    try:
        region = parameter.resolve(text, subject)
    except HookVizError:  # the lens shows the error
        region = regions.NOTHING
    _mark_region(
        draw(input_picture(subject.model_input)),
        region,
        say(parameter.label),
        key,
        lambda marked: update_link(**{key: None if marked == default else marked}),
        boxes=boxes,
    )
    return text


def _layer(parameter: kinds.LayerChoice, key: str, subject: Subject) -> str | None:
    return st.selectbox(
        say(parameter.label),
        parameter.offered(subject.trace),
        index=None,
        placeholder=say("automatic"),
        key=key,
        help=say(parameter.help) or None,
        bind="query-params",
    )


def _attending(parameter: AttendingLayer, key: str, subject: Subject) -> str | None:
    try:
        names = parameter.choices(subject)
    except HookVizError:
        names = ()  # the lens shows the error
    return st.selectbox(
        say(parameter.label),
        names,
        index=None,
        placeholder=say("the last: {layer}", layer=names[-1]) if names else say("none"),
        key=key,
        help=say(parameter.help) or None,
        bind="query-params",
    )


def scores_slot(subject: Subject) -> AbstractContextManager[object]:
    """Wait for a job slot to compute the network's scores, unless the session has them."""
    assert subject.cache is not None
    model = subject.model
    if engine.is_cached(model, subject.model_input, (), subject.cache):
        return nullcontext()
    need = pass_need(model, subject.model_input)
    return turn(model.title, "scores", model=model.name, need=need)


def _class(parameter: kinds.ClassChoice, key: str, subject: Subject) -> int | None:
    try:
        with st.container(), scores_slot(subject):
            top = subject.label(parameter.start(subject))
    except HookVizError:
        return None  # the lens shows the error
    word = TARGET if parameter.name == TARGET else key  # all lenses share the target
    if word != key and key in st.query_params:  # an old link, in which each lens had its own
        update_link(**{word: st.query_params[key], key: None})
    names = _class_names(subject, st.query_params.get(word))
    chosen = linked_choice(
        st.selectbox,
        say(parameter.label),
        {name: label for name, (_, label) in names.items()},
        word,
        first=None,
        index=None,
        placeholder=say(parameter.unchosen, top=top),
        help=say(parameter.help) or None,
    )
    return None if chosen is None else names[chosen][0]


def _class_names(subject: Subject, chosen: str | None = None) -> dict[str, tuple[int, str]]:
    """Return each class's number and label by its name in a link, the likeliest first.

    The likeliest five and the chosen one have their probability in the label.
    """
    answer = subject.answer
    known = subject.model.categories
    names = names_in_links(known, len(answer.scores))
    values = answer.values
    top = values.argsort(descending=True, stable=True)[:_LIKELIEST].tolist()
    listed = {}
    for number in dict.fromkeys((*top, *range(len(names)))):
        suffix = f" ({number})" if names[number].endswith(f" ({number})") else ""
        has_value = number in top or names[number] == chosen
        value = f" · {answer.text(float(values[number]))}" if has_value else ""
        listed[names[number]] = number, f"{listed_label(number, known)}{suffix}{value}"
    return listed


def _real_number(
    parameter: kinds.RealNumber | kinds.WholeNumber,
    key: str,
    _subject: Subject,
    **looks: Any,
) -> float | None:
    bounds: dict[str, Any] = {
        "min_value": float(parameter.low),
        "max_value": float(parameter.high),
        "value": float(parameter.default),
        "format": "%g",
    }
    number: float | None = st.number_input(
        say(parameter.label),
        key=key,
        help=say(parameter.help) or None,
        bind="query-params",
        **(bounds | looks),
    )
    return number


def _whole_number(parameter: kinds.WholeNumber, key: str, subject: Subject) -> int | None:
    # a real number in the widget: Streamlit fails at 1e999 in a link for a whole one
    looks: dict[str, Any] = {"step": 1.0, "format": "%.0f"}
    if unset := parameter.in_words(subject):
        looks |= {"value": None, "placeholder": unset, "min_value": parameter.default + 1.0}
    chosen = _real_number(parameter, key, subject, **looks)
    return None if chosen is None else round(chosen)


def _channel(parameter: kinds.ChannelChoice, key: str, _subject: Subject) -> int:
    """Show the channel of the link, which the explorer shows too, and return it."""
    text = st.query_params.get(key) or word("channel") or ""
    number = int(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else parameter.default
    st.session_state[key] = number
    return st.number_input(
        say(parameter.label),
        parameter.low,
        parameter.high,
        step=1,
        key=key,
        help=say(parameter.help) or None,
        on_change=lambda: update_link(**{"channel": str(st.session_state[key]), key: None}),
    )


def _one_of(parameter: kinds.OneOf, key: str, _subject: Subject) -> str:
    chosen = linked_choice(
        st.selectbox,
        say(parameter.label),
        parameter.choices,
        key,
        first=parameter.choices[0],
        help=say(parameter.help) or None,
    )
    return chosen or parameter.choices[0]


def _switch(parameter: kinds.Switch, key: str, _subject: Subject) -> bool:
    return st.toggle(
        say(parameter.label),
        parameter.default,
        key=key,
        help=say(parameter.help) or None,
        bind="query-params",
    )


def _channels(parameter: kinds.Channels, key: str, _subject: Subject) -> str:
    """Show a field for channels, at first with the explorer's channel, and return its text."""
    picked = View.of_link(words()).channel
    default = "" if picked is None else str(picked)
    in_link = word(key)
    text = st.session_state[key] = default if in_link is None else in_link

    def write_link() -> None:
        typed = st.session_state[key].strip()
        update_link(**{key: None if typed == default else typed})

    st.text_input(
        say(parameter.label),
        key=key,
        placeholder=say("such as {example}", example=parameter.example),
        help=say(parameter.help) or None,
        on_change=write_link,
    )
    return text


def _images(parameter: kinds.MoreImages, key: str, subject: Subject) -> list[InputImage]:
    files = st.file_uploader(
        say(parameter.label),
        resources.IMAGE_TYPES,
        accept_multiple_files=True,
        max_upload_size=settings().upload_mb,
        key=key,
        help=say(parameter.help) or None,
    )
    images: list[InputImage] = []
    pixels, most = 0, settings().max_pixels  # all images are in memory at once
    for file in files:
        images.append(resources.decode(file.getvalue(), file.name, file.file_id))
        pixels += images[-1].width * images[-1].height
        if pixels > most:
            raise ImageError(
                say(
                    "Together these images have more than {limit:,.1f} million pixels "
                    "(HOOKVIZ_MAX_PIXELS); give fewer of them, or smaller versions.",
                    limit=most / 1e6,
                )
            )
    if st.toggle(say("Samples and recent images too"), True, key=f"{key}-samples"):
        recent = [read_recent(each) for each in recent_images()]
        known = [resources.decode_sample(sample) for sample in samples()]
        own = subject.image.digest if subject.image else ""  # most similar to itself
        images += [image for image in (*recent, *known) if image.digest != own]
    return images


_BOXES = 12  # of highest score
_OTHER_PX = 160  # of the other image: on a phone the result stands below it


def offered_part(lens: Lens, subject: Subject) -> str:
    """Return `REGION` or `LIKE` if the lens can be asked about that part of the answer, or ""."""
    parts = parts_of_answer(lens)
    if not parts or len(subject.shape) != 3:
        return ""
    try:
        with scores_slot(subject):
            kind = kind_of_answer(subject)
    except HookVizError:
        return ""  # the lens shows the error
    part = {MAPS: REGION, BOXES: REGION, EMBEDDING: LIKE}.get(kind, "")
    return part if part in parts else ""


def within_link(subject: Subject) -> Subject:
    """Return the subject whose classes are those within the link's region, where there is one."""
    try:
        region = st.query_params.get(REGION)
        if region is None:
            return subject
        within, _ = restrict_to_region(subject, region)
        with scores_slot(within):
            kind_of_answer(within)  # or the choice of a class would wait for it, and leave a gap
    except HookVizError:
        return subject  # the lens shows the error
    return within


def pick_part(part: str, subject: Subject) -> dict[str, Any]:
    """Show the choice of a part of the answer; an empty result means all of the answer."""
    return _pick_answer_region(subject) if part == REGION else _pick_like(subject)


def _pick_answer_region(subject: Subject) -> dict[str, Any]:
    boxes = _surest(subject.answer.boxes)
    text = _pick_region(
        REGION_CHOICE,
        REGION,
        subject,
        default=regions.NOTHING,
        draw=lambda picture: _with_boxes(picture, boxes, subject),
        boxes=boxes[:, :4].tolist(),
    )
    if subject.answer.boxes is None:
        st.caption(say("Mark a region to ask about a class there alone."))
    else:
        st.caption(say("Click a box to ask about it; of a region it is the one that fits best."))
    return {} if text == regions.NOTHING else {REGION: text}


def _surest(boxes: Tensor | None) -> Tensor:
    """Return a detector's boxes of highest score, cut at the input's edges, ``(M, 6)``."""
    if boxes is None:
        return torch.zeros(0, 6)
    surest = boxes[boxes[:, 5].argsort(descending=True)[:_BOXES]]
    return torch.cat([surest[:, :4].clamp(0, 1), surest[:, 4:]], 1)


def _with_boxes(picture: Pixels, boxes: Tensor, subject: Subject) -> Pixels:
    """Draw boxes with their classes and scores on a picture, ``(H, W, 3)``."""
    if not len(boxes):
        return picture
    height, width, _ = picture.shape
    pixels = draw_bounding_boxes(
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
    return np.ascontiguousarray(pixels.permute(1, 2, 0).numpy())


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
    st.image(other.pixels, width=_OTHER_PX)
    return {LIKE: resources.prepare(subject.model, other, size=None, whole=False)}


# Called with the parameter, its key and the subject; returns the value.
_WIDGETS: dict[type[Parameter], Callable[[Any, str, Subject], Any]] = {
    kinds.LayerChoice: _layer,
    kinds.ClassChoice: _class,
    kinds.ChannelChoice: _channel,
    kinds.WholeNumber: _whole_number,
    kinds.RealNumber: _real_number,
    kinds.OneOf: _one_of,
    kinds.Switch: _switch,
    kinds.Channels: _channels,
    kinds.MoreImages: _images,
    AttendingLayer: _attending,
}
