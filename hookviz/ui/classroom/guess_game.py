"""Play *Guess the channel* with a class: choose the layer and the answers, and ask on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import SystemRandom
from typing import TypeVar

import streamlit as st

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.files import PHOTOGRAPH, atlas_of, known_atlases
from hookviz.classroom.guess_channel import (
    Found,
    find_channel,
    four_names,
    make_riddle,
    typed_names,
)
from hookviz.classroom.question import LONGEST_ANSWER, ask_riddle
from hookviz.errors import ClassroomError, HookVizError
from hookviz.language.naming import class_label
from hookviz.language.saying import mark, say
from hookviz.models import catalog, user_models
from hookviz.models.shapesnet import CATEGORIES
from hookviz.types import Model, ModelSpec
from hookviz.ui.classroom import membership
from hookviz.ui.link import update_link
from hookviz.ui.menu import Menu
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import ModelChoice, choose, chosen_sample, plain, sample_image
from hookviz.ui.theme import colours

NAMES, TYPED, WORDS = mark("Four names"), mark("Names of my own"), mark("Their own words")
_ANSWERS = (NAMES, TYPED, WORDS)

T = TypeVar("T")

# No widget has these keys, so no link can set them.
_GAME, _NEXT, _CHANNEL = "_guess-game", "_guess-next", "_guess-found"
_MODEL_CHANGED = "_guess-taken"


@dataclass(slots=True)
class Game:
    """Settings of a game, and its channels so far.

    Attributes:
        layer: of the channels; empty for any.
        answers: kind of answers, one of `NAMES`, `TYPED` and `WORDS`.
        hides: whether votes are hidden until the question is closed.
        known: channels that were asked about.
    """

    layer: str = ""
    answers: str = NAMES
    hides: bool = True
    known: set[tuple[str, int]] = field(default_factory=set)


def guess_menu() -> Menu:
    """Return the menu that starts the game."""
    hint = say("A game: what excites this channel? Everybody guesses on their own screen")
    return Menu(say("Guess the channel"), "extension", "hv-class-guess", _show_choices, hint)


def request_next() -> None:
    """Ask for the next channel in this run of the page; for a callback."""
    st.session_state[_NEXT] = True


def ask_next_if_pressed() -> None:
    """Ask for the next channel after `request_next`, with the game's settings."""
    if not st.session_state.pop(_NEXT, False):
        return
    game = st.session_state.setdefault(_GAME, Game())
    if game.answers == TYPED:
        st.toast(say("Type the next channel's names in the menu Guess the channel."))
        return
    _play(game, is_first=False)


def _show_choices() -> None:
    if st.session_state.pop(_MODEL_CHANGED, False):
        st.rerun()  # the page, and not the menu alone
    choice = _choice_now()
    atlas = None if choice is None else _listed_atlas(choice)
    if choice is None or atlas is None:
        _offer_nearest(choice)
        return
    surprise = say("Surprise me")
    layer = st.selectbox(say("Layer"), [surprise, *atlas.layers], key="hv-guess-layer")
    answers = st.segmented_control(
        say("Answers"),
        _ANSWERS,
        default=NAMES,
        required=True,
        format_func=say,
        key="hv-guess-way",
    )
    hides = st.checkbox(
        say("Hide the votes until I close the question"), value=True, key="hv-guess-hides"
    )
    game = Game("" if layer == surprise else layer, answers or NAMES, hides, _known())
    if game.answers == TYPED:
        _type_names(game)
        return
    if st.button(say("Begin the game"), type="primary", key="hv-guess-begin"):
        _show_error(lambda: _play(game, is_first=True))


def _type_names(game: Game) -> None:
    """Show a channel to the teacher, who types its names."""
    found: Found | None = st.session_state.get(_CHANNEL)
    if found is None or game.layer not in ("", found.layer):
        found = None
    label = say("Another channel") if found else say("Show me a channel")
    if st.button(label, key="hv-guess-draw"):
        found = _show_error(lambda: _with_atlas(lambda _model, atlas: _find(atlas, game)))
        st.session_state[_CHANNEL] = found
    if found is None:
        return
    pictures = [each.patch for each in found.strongest if each.patch is not None]
    st.image(pictures, width=72)
    with st.form("hv-guess-names", border=False):
        typed = st.text_area(
            say("Four names, one a line, the right one first: they are mixed"),
            max_chars=4 * (LONGEST_ANSWER + 1),
            height=140,
            key="hv-guess-typed",
        )
        sent = st.form_submit_button(say("Ask the class"), type="primary")
    if sent:
        is_first = not game.known
        _show_error(lambda: _play(game, is_first=is_first, found=found, typed=typed.splitlines()))


def _known() -> set[tuple[str, int]]:
    game: Game | None = st.session_state.get(_GAME)
    return game.known if game is not None else set()


def _show_error(work: Callable[[], T]) -> T | None:
    """Call a function and return its result; show an error and return None if it fails."""
    try:
        return work()
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None


def _play(
    game: Game, *, is_first: bool, found: Found | None = None, typed: Sequence[str] = ()
) -> None:
    """Ask the class for a channel.

    Raises:
        ClassroomError: no channel is left, or the names can't be asked.
    """
    taught = membership.taught()
    if taught is None:
        return
    rng = SystemRandom()

    def ask(model: Model, atlas: Atlas) -> None:
        channel = found or _find(atlas, game)
        names = None
        if game.answers == NAMES:
            names = four_names(atlas, channel, rng)
        elif game.answers == TYPED:
            names = typed_names(typed, rng)
        image = sample_image(chosen_sample())  # no photograph of the session's own
        model_input = resources.prepare(model, image, size=None, whole=False)
        choice = _choice_now()
        cache = resources.sample_cache(choice) if choice is not None else None
        with turn(say("The channel's map"), model=model.name, layer=channel.layer):
            riddle = make_riddle(
                channel,
                names,
                model,
                atlas,
                today=(image, model_input),
                colours=colours(),
                cache=cache,
            )
        game.known.add(channel.key)
        taught[0].ask(ask_riddle(riddle, is_hidden=game.hides), is_first=is_first)

    _with_atlas(ask)
    st.session_state[_GAME] = game
    st.session_state.pop(_CHANNEL, None)


def _find(atlas: Atlas, game: Game) -> Found:
    return find_channel(atlas, game.layer, SystemRandom(), game.known)


def class_labels() -> dict[str, str]:
    """Return this screen's translations of class names in bundled atlases.

    A riddle has the atlas's own names: the screens of a class can differ in language.
    """
    labels = {name: class_label(number, CATEGORIES) for number, name in enumerate(CATEGORIES)}
    labels[PHOTOGRAPH] = say(PHOTOGRAPH)
    return {name: label for name, label in labels.items() if label != name}


def _choice_now() -> ModelChoice | None:
    """Return the network in the link, with all its channels; None for uploaded weights.

    The bar is drawn before the sidebar's choice.
    """
    in_link = st.query_params.get("model", "")
    specs = [*user_models.specs(), *catalog.models_at_once(in_link)]
    spec = next((each for each in specs if in_link in (each.title, each.name)), None)
    weights = st.query_params.get("weights", "pretrained")
    if weights == "yours":
        return None
    if spec is not None and user_models.is_own(spec):
        weights = "own"
    return ModelChoice(spec or catalog.first_model(), weights)


def _listed_atlas(choice: ModelChoice) -> Atlas | None:
    """Return an atlas of a network of that name, before it is loaded; None without one."""
    if choice.weights == "random":
        return None
    return next((each for each in known_atlases() if each.model == choice.spec.name), None)


def _with_atlas(work: Callable[[Model, Atlas], T]) -> T:
    """Call a function with the network in the link and its atlas, and return the result.

    Raises:
        ClassroomError: it has no atlas.
    """
    choice = _choice_now()
    if choice is None or _listed_atlas(choice) is None:
        raise ClassroomError(_no_atlas(choice))
    with resources.use_model(choice) as model:
        atlas = atlas_of(model)
        if atlas is None:
            raise ClassroomError(_no_atlas(choice))
        return work(model, atlas)


def _no_atlas(choice: ModelChoice | None) -> str:
    title = say("This network") if choice is None else choice.spec.title
    return say(
        "{model} with these weights has no atlas here, so nobody knows what excites its channels.",
        model=title,
    )


def _nearest(choice: ModelChoice | None) -> ModelSpec | None:
    """Return a network with an atlas: the same one pretrained, or one of the same training set."""
    names = {each.model for each in known_atlases()}
    listed = [spec for spec in catalog.described_models() if spec.name in names]
    if choice is not None:
        own = choice.spec
        listed.sort(key=lambda spec: (spec.name != own.name, spec.trained_on != own.trained_on))
    return next(iter(listed), None)


def _offer_nearest(choice: ModelChoice | None) -> None:
    """Show that the network has no atlas, and a button for the nearest one with an atlas."""
    st.info(plain(_no_atlas(choice)), icon=":material/extension_off:")
    spec = _nearest(choice)
    if spec is not None:
        st.button(
            say("Take {model}", model=spec.title),
            on_click=_choose_model,
            args=(spec.title,),
            type="primary",
            key="hv-guess-take",
        )


def _choose_model(title: str) -> None:
    st.session_state[_MODEL_CHANGED] = True
    choose(model=title, weights="pretrained")
    update_link(**dict.fromkeys(("layer", "after", "channel", "cell")))
