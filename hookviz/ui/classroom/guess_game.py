"""Play *Guess the channel* with a class: choose what is guessed and how, and go on to the next."""

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
from hookviz.images import reading
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
from hookviz.ui.state import ModelChoice, choose, chosen_sample, plain
from hookviz.ui.theme import colours

OPEN = "hv-class-guess"
"""Key of the menu."""

NAMES, TYPED, WORDS = mark("Four names"), mark("Names of my own"), mark("Their own words")
_WAYS = (NAMES, TYPED, WORDS)

T = TypeVar("T")

# Keys of session_state that no widget has can't be set from outside.
_GAME, _NEXT, _FOUND = "_guess-game", "_guess-next", "_guess-found"
_TAKEN = "_guess-taken"


@dataclass(slots=True)
class Game:
    """What a class guesses, and what it has guessed.

    Attributes:
        layer: of which layer the channels are; empty for any.
        way: one of the ways to answer.
        hides: whether votes are hidden until the question is closed.
        known: channels that were guessed.
    """

    layer: str = ""
    way: str = NAMES
    hides: bool = True
    known: set[tuple[str, int]] = field(default_factory=set)


def guess_menu() -> Menu:
    """Build the menu by which the game is begun."""
    hint = say("A game: what excites this channel? Everybody guesses on their own screen")
    return Menu(say("Guess the channel"), "extension", OPEN, _show_choices, hint)


def go_on() -> None:
    """Have this run of the page ask for the next channel, in a callback."""
    st.session_state[_NEXT] = True


def ask_next_if_asked() -> None:
    """Ask for the next channel where the teacher went on, with what the game was begun with."""
    if not st.session_state.pop(_NEXT, False):
        return
    game = st.session_state.setdefault(_GAME, Game())
    if game.way == TYPED:
        st.toast(say("Type the next channel's names in the menu Guess the channel."))
        return
    _play(game, is_first=False)


def _show_choices() -> None:
    if st.session_state.pop(_TAKEN, False):
        st.rerun()  # the page with the other network, and not the menu alone
    choice = _choice_now()
    atlas = None if choice is None else _listed_atlas(choice)
    if choice is None or atlas is None:
        _say_nearest(choice)
        return
    surprise = say("Surprise me")
    layer = st.selectbox(say("Layer"), [surprise, *atlas.layers], key="hv-guess-layer")
    way = st.segmented_control(
        say("Answers"),
        _WAYS,
        default=NAMES,
        required=True,
        format_func=say,
        key="hv-guess-way",
    )
    hides = st.checkbox(
        say("Hide the votes until I close the question"), value=True, key="hv-guess-hides"
    )
    game = Game("" if layer == surprise else layer, way or NAMES, hides, _known())
    if game.way == TYPED:
        _type_names(game)
        return
    if st.button(say("Begin the game"), type="primary", key="hv-guess-begin"):
        _report(lambda: _play(game, is_first=True))


def _type_names(game: Game) -> None:
    """Show a channel to the teacher first, who names it."""
    found: Found | None = st.session_state.get(_FOUND)
    if found is None or game.layer not in ("", found.layer):
        found = None
    drawn = st.button(
        say("Another channel") if found else say("Show me a channel"), key="hv-guess-draw"
    )
    if drawn:
        found = _report(lambda: _with_atlas(lambda _model, atlas: _find(atlas, game)))
        st.session_state[_FOUND] = found
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
        _report(lambda: _play(game, is_first=is_first, found=found, typed=typed.splitlines()))


def _known() -> set[tuple[str, int]]:
    game: Game | None = st.session_state.get(_GAME)
    return game.known if game is not None else set()


def _report(work: Callable[[], T]) -> T | None:
    """Do it, or say why it can't be done."""
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
        if game.way == NAMES:
            names = four_names(atlas, channel, rng)
        elif game.way == TYPED:
            names = typed_names(typed, rng)
        image = reading.read(chosen_sample().path)  # nobody's own photograph
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
    st.session_state.pop(_FOUND, None)


def _find(atlas: Atlas, game: Game) -> Found:
    return find_channel(atlas, game.layer, SystemRandom(), game.known)


def said_names() -> dict[str, str]:
    """Return how this screen says the classes of the atlases in the box, where it does otherwise.

    The names of a riddle come as the atlas has them, since a class may speak two languages.
    """
    said = {name: class_label(number, CATEGORIES) for number, name in enumerate(CATEGORIES)}
    said[PHOTOGRAPH] = say(PHOTOGRAPH)
    return {name: own for name, own in said.items() if own != name}


def _choice_now() -> ModelChoice | None:
    """Return the network that is looked at, with all its channels; None for weights of one's own.

    The bar is drawn before the choice is.
    """
    asked = st.query_params.get("model", "")
    specs = [
        *user_models.specs(),
        *catalog.models_at_once(asked),
    ]
    spec = next((each for each in specs if asked in (each.title, each.name)), None)
    weights = st.query_params.get("weights", "pretrained")
    if weights == "yours":
        return None
    if spec is not None and user_models.is_own(spec):
        weights = "own"
    return ModelChoice(spec or catalog.first_model(), weights)


def _listed_atlas(choice: ModelChoice) -> Atlas | None:
    """Return an atlas of a network of that name, before it is loaded; None where there is none."""
    if choice.weights == "random":
        return None
    return next((each for each in known_atlases() if each.model == choice.spec.name), None)


def _with_atlas(work: Callable[[Model, Atlas], T]) -> T:
    """Do it with the network that is looked at, and its atlas.

    Raises:
        ClassroomError: it has none.
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


def nearest(choice: ModelChoice | None) -> ModelSpec | None:
    """Return a network with an atlas: the same one as it was trained, else one trained alike."""
    named = {each.model for each in known_atlases()}
    listed = [spec for spec in catalog.described_models() if spec.name in named]
    if choice is None:
        return next(iter(listed), None)
    asked = choice.spec
    listed.sort(key=lambda spec: (spec.name != asked.name, spec.trained_on != asked.trained_on))
    return next(iter(listed), None)


def _say_nearest(choice: ModelChoice | None) -> None:
    """Say that there is nothing to guess, and offer the nearest network that has an atlas."""
    st.info(plain(_no_atlas(choice)), icon=":material/extension_off:")
    spec = nearest(choice)
    if spec is not None:
        st.button(
            say("Take {model}", model=spec.title),
            on_click=_take,
            args=(spec.title,),
            type="primary",
            key="hv-guess-take",
        )


def _take(title: str) -> None:
    st.session_state[_TAKEN] = True
    choose(model=title, weights="pretrained")
    update_link(**dict.fromkeys(("layer", "after", "channel", "cell")))
