"""Show the page's first row: the model's input and the classes that it predicts."""

from collections.abc import Callable, Mapping
from html import escape
from urllib.parse import urlencode

import streamlit as st

from hookviz.drawing.pictures import small_png
from hookviz.images.samples import samples
from hookviz.language.saying import mark, say
from hookviz.markup import data_url
from hookviz.models.bundled import BUNDLED
from hookviz.outputs.answer import Top, no_classes
from hookviz.types import Capture, Model, ModelInput
from hookviz.ui.link import words as link_words
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import ALL_FAMILIES, ImageChoice, choose

_INPUT_PX = 76
_ALWAYS = 2  # classes that are listed however unlikely
_LEAST_SHARE = 0.01
_NOUNS = {"photo": mark("photographs"), "drawn": mark("drawings")}

LensLink = Callable[[int], Mapping[str, str]]
"""Returns, for a class by its number, the changes of the link to the lens that explains it."""


def show_summary(
    capture: Capture,
    model: Model,
    image_choice: ImageChoice,
    lens_link: LensLink,
    *,
    instead: str,
) -> None:
    """Show the input and the classes, side by side.

    Args:
        capture: a forward pass.
        model: the network.
        image_choice: the image.
        lens_link: of each class.
        instead: the weights in use in place of refused ones; empty if none were refused.
    """
    _show_input(capture.model_input, image_choice)
    with st.container(width="stretch", gap=None):
        if model.weights == "pretrained" and not (model.note or instead):
            promise = say("Look inside a network that sees.")
            st.html(f'<p class="hv-promise">{escape(promise)}</p>')
        if instead:
            st.badge(
                say("refused: this is still with {weights}", weights=instead),
                icon=":material/warning:",
                color="orange",
            )
        _show_predictions(capture, model, image_choice, lens_link)


def _show_input(model_input: ModelInput, image_choice: ImageChoice) -> None:
    """Show the model's input, small."""
    if model_input.picture is None:
        return
    cache, key = session_cache(), ("small", model_input.digest)
    small: str | None = cache.get(key)
    if small is None:
        # as wide as in the row: no browser resizes it again
        small = data_url(small_png(model_input.picture, _INPUT_PX))
        cache.put(key, small, len(small))
    st.image(small, width=_INPUT_PX, alt=say("What the model sees: {alt}", alt=image_choice.alt))


def _show_predictions(
    capture: Capture, model: Model, image_choice: ImageChoice, lens_link: LensLink
) -> None:
    """Show the likeliest classes as bars, five at most, with a warning for random weights."""
    if model.weights.partition(",")[0] == "random":  # with or without silent channels
        st.badge(
            say("random weights: these predictions mean nothing"),
            icon=":material/casino:",
            color="orange",
        )
    if model.note:
        label = say("one of several") if model.weights_note else say("in evaluation mode")
        st.badge(label, color="gray", help=model.note)
    if capture.answer is None:
        st.caption(say("This network puts out no class scores."))
        return
    if not capture.answer.has_classes:
        st.caption(no_classes(len(capture.answer.scores)))
        return
    is_share = capture.answer.is_share
    link = link_words()
    rows = "".join(
        _row(each, _link_attributes(link, lens_link(each.number)), is_share=is_share)
        for rank, each in enumerate(capture.top(5))
        if rank < _ALWAYS or not is_share or each.share >= _LEAST_SHARE
    )
    if capture.answer.reading.question:
        st.badge(
            say("scores, since nobody said what they are"),
            color="orange",
            help=capture.answer.reading.question,
        )
    st.html(f'<div class="hv-classes" title="{escape(_about(capture, image_choice))}">{rows}</div>')
    _offer_another(model, image_choice)


def _row(top: Top, link_attributes: str, *, is_share: bool) -> str:
    """Return a class with its value, and a bar where that is a share, as HTML."""
    bar = f'<span class="track"><span class="bar" style="width:{top.share:.2%}"></span></span>'
    return (
        f'<a class="class" {link_attributes}>'
        f'<span class="label">{escape(top.name)}</span>{bar if is_share else ""}'
        f'<span class="share">{escape(top.text)}</span></a>'
    )


def _link_attributes(link: Mapping[str, str], words: Mapping[str, str]) -> str:
    """Return the attributes of a link from `link` with changed `words`, for ``address.js``."""
    whole = urlencode({**link, **words})
    hint = say("Where does it look for this class?")
    return (
        f'href="?{escape(whole)}" data-hv-sets="{escape(urlencode(words))}" title="{escape(hint)}"'
    )


def _offer_another(model: Model, image_choice: ImageChoice) -> None:
    """Show a button for the bundled model that knows such images, if this one does not."""
    bundled = BUNDLED.get(model.name)
    if bundled is None or model.weights != "pretrained":
        return
    # uploads are photographs most often
    kind = next((sample.kind for sample in samples() if sample.path == image_choice.file), "photo")
    if kind == bundled.image_kind:
        return
    other = next(network for network in BUNDLED.values() if network.image_kind == kind)
    st.button(
        say(
            "{model} knows {subjects}",
            model=other.title.partition(" (")[0],
            subjects=say(_NOUNS[kind]),
        ),
        icon=":material/swap_horiz:",
        type="tertiary",
        help=say(
            "{model} knows {subjects} alone.",
            model=model.title,
            subjects=say(_NOUNS[bundled.image_kind]),
        ),
        on_click=choose,
        kwargs={"family": ALL_FAMILIES, "model": other.title, "weights": "pretrained"},
    )


def _about(capture: Capture, image_choice: ImageChoice) -> str:
    picture = capture.model_input.picture
    if picture is None:
        return say("The likeliest classes")
    height, width = picture.shape[:2]
    return say(
        "The highest, each with its {value}. The model sees "
        "{width}×{height} of {image_width:,}×{image_height:,} pixels.",
        value="" if capture.answer is None else capture.answer.word,
        width=width,
        height=height,
        image_width=image_choice.image.width,
        image_height=image_choice.image.height,
    )
