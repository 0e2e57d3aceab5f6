"""Show the widgets of a lens, one for each parameter that it declares."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing import engine
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.pictures import encode_png
from hookviz.errors import HookVizError, ImageError
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.language.naming import listed_label, names_in_links
from hookviz.language.saying import say
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract import regions
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import Parameter
from hookviz.lenses.contract.shared_choices import AttendingLayer
from hookviz.markup import data_url
from hookviz.serving.memory_reservations import pass_need
from hookviz.settings import settings
from hookviz.types import InputImage, LayerInfo, Pixels
from hookviz.ui.components.files import mount
from hookviz.ui.lenses.lens_choice import layers_at_side
from hookviz.ui.link import update_link, word, words
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.recent_images import read_recent, recent_images
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import TARGET

_IN_A_ROW = 4  # settings; those beyond are folded away
_LIKELIEST = 5  # classes that are listed first, with their probabilities


_MOST_LETTERS = 20_000  # that the browser may send; a mask of 32 × 32 cells has far fewer


def _mark_region(
    picture: Pixels,
    region: str,
    label: str,
    key: str,
    on_mark: Callable[[str], None],
    *,
    boxes: Sequence[Sequence[float]] = (),
) -> None:
    """Show the picture with the region marked; `on_mark` gets the text of another one.

    Args:
        picture: what is marked, RGB uint8, ``(H, W, 3)``.
        region: the text of what is marked now, as `hookviz.lenses.contract.regions` has it.
        label: what the control is called.
        key: of the component in Streamlit's state.
        on_mark: called before the next run of the page.
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
    """Let a person choose every parameter of a lens but `layer`, which is chosen at the side."""
    at_side = layers_at_side(lens)
    chosen: dict[str, Any] = {parameter.name: layer.name for parameter in at_side}
    elsewhere = [*at_side, *drawn_parameters(lens)]
    listed = [each for each in lens.parameters if each not in elsewhere]
    row = st.container(horizontal=True, vertical_alignment="bottom", key="hv-settings", gap="small")
    more: DeltaGenerator | None = None
    free = _IN_A_ROW
    for parameter in listed:
        if not parameter.matters(chosen):
            continue
        place = row
        if parameter.rare or isinstance(parameter, kinds.MoreImages) or not free:
            more = place = more or row.popover(say("More settings"), icon=":material/tune:")
        else:
            free -= 1
        with place:
            chosen[parameter.name] = _pick(parameter, lens, subject)
    for _ in range(free + (more is None)):
        row.empty()  # or a widget of the lens before would stand there until the run is over
    return chosen


def _pick(parameter: Parameter, lens: Lens, subject: Subject) -> Any:
    """Let a person choose one parameter, in the widget for its kind."""
    widget = next(_WIDGETS[kind] for kind in type(parameter).__mro__ if kind in _WIDGETS)
    return widget(parameter, f"{lens.slug}-{parameter.name}", subject)


def drawn_parameters(lens: Lens) -> list[regions.RegionChoice]:
    """Return the parameters that are chosen on a picture beside what the lens shows."""
    kind = regions.RegionChoice
    return [parameter for parameter in lens.parameters if isinstance(parameter, kind)]


def draw_parameters(lens: Lens, subject: Subject) -> dict[str, Any]:
    """Let a person choose `drawn_parameters` on the picture."""
    return {
        parameter.name: pick_region(
            parameter, f"{lens.slug}-{parameter.name}", subject, start=parameter.default
        )
        for parameter in drawn_parameters(lens)
    }


def pick_region(
    parameter: regions.RegionChoice,
    key: str,
    subject: Subject,
    *,
    start: str,
    draw: Callable[[Pixels], Pixels] = lambda picture: picture,
    boxes: Sequence[Sequence[float]] = (),
) -> str:
    """Let a person mark a region of the picture that the network sees, and return its text.

    Args:
        parameter: what is chosen.
        key: of it in the link.
        subject: whose picture it is.
        start: the region where the link says nothing.
        draw: what is drawn on the picture first.
        boxes: as `_mark_region` has them.
    """
    text = st.query_params.get(key, start)
    try:
        shown = parameter.resolve(text, subject)
    except HookVizError:  # the lens says what is wrong
        shown = regions.NOTHING
    _mark_region(
        draw(input_picture(subject.model_input)),
        shown,
        say(parameter.label),
        key,
        lambda marked: update_link(**{key: None if marked == start else marked}),
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
        names = ()  # the lens itself says what is missing
    return st.selectbox(
        say(parameter.label),
        names,
        index=None,
        placeholder=say("the last: {layer}", layer=names[-1]) if names else say("none"),
        key=key,
        help=say(parameter.help) or None,
        bind="query-params",
    )


def scores_turn(subject: Subject) -> AbstractContextManager[object]:
    """Wait for a turn to run the network for its scores, unless the session has them."""
    assert subject.cache is not None
    model = subject.model
    if engine.is_cached(model, subject.model_input, (), subject.cache):
        return nullcontext()
    need = pass_need(model, subject.model_input)
    return turn(model.title, "scores", model=model.name, need=need)


def _class(parameter: kinds.ClassChoice, key: str, subject: Subject) -> int | None:
    try:
        with st.container(), scores_turn(subject):
            top = subject.label(parameter.start(subject))
    except HookVizError:
        return None  # the lens itself says what is missing
    word = TARGET if parameter.name == TARGET else key  # the one asked about, in whatever lens
    if word != key and key in st.query_params:  # as links were written when each lens had its own
        update_link(**{word: st.query_params[key], key: None})
    names = _class_names(subject, st.query_params.get(word))
    chosen = linked_choice(
        st.selectbox,
        say(parameter.label),
        {name: shown for name, (_, shown) in names.items()},
        word,
        first=None,
        index=None,
        placeholder=say(parameter.unchosen, top=top),
        help=say(parameter.help) or None,
    )
    return None if chosen is None else names[chosen][0]


def _class_names(subject: Subject, chosen: str | None = None) -> dict[str, tuple[int, str]]:
    """Return each class's number and label by its name in a link, the likeliest first.

    The chosen one has its probability too: on another image it may be none of the likeliest, and
    would lose it.
    """
    answer = subject.answer
    known = subject.model.categories
    names = names_in_links(known, len(answer.scores))
    values = answer.values
    top = values.argsort(descending=True, stable=True)[:_LIKELIEST].tolist()
    listed = {}
    for number in dict.fromkeys((*top, *range(len(names)))):
        which = f" ({number})" if names[number].endswith(f" ({number})") else ""
        is_told = number in top or names[number] == chosen
        share = f" · {answer.text(float(values[number]))}" if is_told else ""
        listed[names[number]] = number, f"{listed_label(number, known)}{which}{share}"
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
    """Let a person choose the channel in the link, which the explorer shows too."""
    asked = st.query_params.get(key) or word("channel") or ""
    number = int(asked) if re.fullmatch(r"\d{1,6}", asked, re.ASCII) else parameter.default
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
    """Let a person name channels: without a word of theirs it is the one that is picked up."""
    picked = View.of_link(words()).channel
    first = "" if picked is None else str(picked)
    named = word(key)
    text = st.session_state[key] = first if named is None else named

    def note() -> None:
        typed = st.session_state[key].strip()
        update_link(**{key: None if typed == first else typed})

    st.text_input(
        say(parameter.label),
        key=key,
        placeholder=say("such as {example}", example=parameter.example),
        help=say(parameter.help) or None,
        on_change=note,
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
    pixels, most = 0, settings().max_pixels  # they are all in memory at once
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
        shown = subject.image.digest if subject.image else ""  # which would be most like itself
        images += [image for image in (*recent, *known) if image.digest != shown]
    return images


# From the parameter, its key and the subject to the choice.
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
