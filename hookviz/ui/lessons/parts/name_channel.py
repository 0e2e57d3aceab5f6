"""Guess the class that excites a channel by its strongest patches: a game of rounds."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import streamlit as st

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.files import PHOTOGRAPH, atlas_of
from hookviz.errors import HookVizError
from hookviz.explorer.excites import patches_of
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.lessons.layers import maps_of
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.models.bundled import BUNDLED
from hookviz.ui.lessons.figures import grid_of, show_on_photograph
from hookviz.ui.lessons.picks import choose_button, pick, picked, remember_link, remember_options
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import plain

GUESSES = "guesses"
"""Option that the page adds: the guesses, in the format of `guesses_of`."""

_ROUNDS = 6
_CHOICES = 4
_LEAST_SHARE = 0.5  # of a channel's strongest images are of one class


@dataclass(frozen=True, slots=True)
class Round:
    """A channel whose strongest images are mostly of one class, and names to pick from.

    Attributes:
        layer: of the channel.
        channel: the channel's number.
        names: classes to pick from.
        right: index of the right class among them.
        agree: number of strongest images of that class.
        among: number of strongest images.
    """

    layer: str
    channel: int
    names: tuple[str, ...]
    right: int
    agree: int
    among: int

    def is_right(self, guess: str) -> bool:
        """Return whether a guess, an index or a typed name, is the right class."""
        if guess.isdecimal():
            return int(guess) == self.right
        name = self.names[self.right]
        return guess.strip().casefold() in {name.casefold(), _label_of(name).casefold()}


def rounds_of(scene: LessonScene) -> tuple[Round, ...]:
    """Return the rounds for a model; none without an atlas of it with classes."""
    atlas = atlas_of(scene.model)
    return () if atlas is None or len(atlas.classes) < _CHOICES else _rounds(atlas)


@lru_cache(maxsize=8)
def _rounds(atlas: Atlas) -> tuple[Round, ...]:
    """Return the rounds of the channels that respond most clearly to one class."""
    answers = (
        (name, answer)
        for name in atlas.classes
        if name != PHOTOGRAPH
        for answer in atlas.channels_of_class(name, 1)
    )
    clearest = sorted(
        (
            (answer.share, answer.contrast, name, answer.layer, answer.channel)
            for name, answer in answers
            if answer.share >= _LEAST_SHARE
        ),
        reverse=True,
    )
    rounds = (_round(atlas, name, layer, channel) for *_, name, layer, channel in clearest)
    return tuple(each for each in rounds if each is not None)[:_ROUNDS]


def _round(atlas: Atlas, name: str, layer: str, channel: int) -> Round | None:
    """Return the round of a channel; None if it responds to other classes as much."""
    try:
        top = atlas.top_activations(layer, channel)
    except HookVizError:
        return None
    counts = Counter(each.image.category for each in top)
    others = sorted(set(atlas.classes) - set(counts) - {PHOTOGRAPH})
    if counts[name] != max(counts.values()) or len(others) < _CHOICES - 1:
        return None
    chance = random.Random(f"{layer} {channel}")  # noqa: S311 - the same choices for everybody
    names = [name, *chance.sample(others, _CHOICES - 1)]
    chance.shuffle(names)
    return Round(layer, channel, tuple(names), names.index(name), counts[name], len(top))


def _label_of(name: str) -> str:
    """Translate the name of an atlas's class."""
    names = BUNDLED["shapesnet"].categories
    return class_label(names.index(name), names) if name in names else name


def guesses_of(text: str, rounds: tuple[Round, ...]) -> dict[int, str]:
    """Read guesses, such as ``"0=2;1=a wheel"``, by round; malformed ones are left out."""
    pairs = (each.partition("=") for each in text.split(";"))
    return {
        int(number): guess
        for number, _, guess in pairs
        if guess and number.isdecimal() and int(number) < len(rounds)
    }


def score(guesses: Mapping[int, str], rounds: tuple[Round, ...]) -> int:
    """Return the number of right guesses."""
    return sum(rounds[at].is_right(guess) for at, guess in guesses.items())


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    rounds = rounds_of(scene)
    guesses = guesses_of(options.get(GUESSES, ""), rounds)
    atlas = atlas_of(scene.model)
    so_far = say("Nothing is guessed yet.")
    if guesses:
        so_far = say(
            "{right} of {guessed} guesses are right so far.",
            right=score(guesses, rounds),
            guessed=len(guesses),
        )
    return {
        "rounds": len(rounds),
        "images": 0 if atlas is None else atlas.counts["tallied"],
        "so_far": so_far,
    }


def _link(scene: LessonScene, _options: Options) -> Mapping[str, str]:
    rounds = rounds_of(scene)
    return {"layer": rounds[0].layer, "channel": str(rounds[0].channel)} if rounds else {}


PART = Part(
    name="name-channel",
    sentence="The parts of images that excite a channel most; the learner picks out of four what "
    "it is about, or types it, and sees how many of the strongest images are of that class.",
    facts=_facts,
    link=_link,
)


_LONGEST = 30  # letters of a typed word
_WIDTHS = (2, 3)  # of the channel on the image, and of the words


def show(scene: LessonScene, _options: Options, key: str) -> None:
    """Draw a round: the patches, the guess, and after it the class of the channel's images."""
    rounds = rounds_of(scene)
    if not rounds:
        words = say(
            "No collection of images that excite its channels, sorted into classes, is here of "
            "{model}. ShapesNet and SqueezeNet have one.",
            model=scene.model.title,
        )
        st.info(plain(words), icon=":material/info:")
        return
    guesses = guesses_of(picked(key, "guesses", ""), rounds)
    names = {number: _title(number, guesses, rounds) for number in range(len(rounds))}
    at = choose_button(say("Round"), names, key, "round", first=0)
    this = rounds[at]
    remember_options(key, {GUESSES: picked(key, "guesses", "")}, {GUESSES: ""})
    remember_link(key, {"layer": this.layer, "channel": str(this.channel)})
    st.caption(
        say(
            "The parts of images that excite channel {channel} of {layer} most",
            channel=this.channel,
            layer=this.layer,
        )
    )
    _show_patches(scene, this)
    _ask(key, at, this, guesses)
    if at in guesses:
        _reveal(scene, this, guesses[at], score(guesses, rounds), len(guesses))


def _title(number: int, guesses: dict[int, str], rounds: tuple[Round, ...]) -> str:
    if number not in guesses:
        return str(number + 1)
    return f"{number + 1} {'✓' if rounds[number].is_right(guesses[number]) else '✗'}"


def _show_patches(scene: LessonScene, this: Round) -> None:
    atlas = atlas_of(scene.model)
    assert atlas is not None  # else there is no round
    patches = patches_of(session_cache(), atlas, this.layer, this.channel)
    pictures = ""
    for position, patch in enumerate(patches, 1):
        alt = escape(say("Number {place}", place=position))  # its name would be the answer
        pictures += f'<img src="{patch.picture}" alt="{alt}">' if patch.picture else ""
    st.html(f'<div class="hv-lesson-patches hv-guessed">{pictures}</div>')


def _ask(key: str, at: int, this: Round, guesses: dict[int, str]) -> None:
    """Show the four names, and a field for a word."""

    def keep(guess: str) -> None:
        clean = guess.replace(";", " ").replace("=", " ").strip()[:_LONGEST]
        if clean:
            moved = {**guesses, at: clean}
            pick(key, "guesses", ";".join(f"{number}={each}" for number, each in moved.items()))

    guess, of_names, of_word = guesses.get(at, ""), f"{key} name {at}", f"{key} word {at}"
    st.session_state[of_names] = (
        int(guess) if guess.isdecimal() and int(guess) < len(this.names) else None
    )
    st.session_state[of_word] = "" if guess.isdecimal() else guess

    def keep_name() -> None:
        chosen = st.session_state[of_names]
        if chosen is not None:
            keep(str(chosen))

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            say("What is it about?"),
            range(len(this.names)),
            key=of_names,
            format_func=lambda number: _label_of(this.names[number]),
            on_change=keep_name,
            width="content",
        )
        st.text_input(
            say("Or in a word of your own"),
            key=of_word,
            max_chars=_LONGEST,
            on_change=lambda: keep(st.session_state[of_word]),
            width=190,
        )


def _reveal(scene: LessonScene, this: Round, guess: str, right: int, guessed: int) -> None:
    """Show the class of the channel's strongest images, and the channel on the image."""
    name = _label_of(this.names[this.right])
    word = _label_of(this.names[int(guess) % len(this.names)]) if guess.isdecimal() else guess
    verdict = (
        say("Yes, {guess}.", guess=word)
        if this.is_right(guess)
        else say("You said {guess}; most of its images are: {name}.", guess=word, name=name)
    )
    hint = say(
        "Of its {among} strongest images {agree} are: {name}. That is a hint, no proof: it may "
        "answer to something that they share with others.",
        among=this.among,
        agree=this.agree,
        name=name,
    )
    tally = say("{right} of {guessed} right", right=right, guessed=guessed)
    values = maps_of(scene, this.layer)[this.channel]
    left, words = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        show_on_photograph(scene, grid_of(values[None]), 0, this.channel)
    with words:
        st.html(
            f'<p class="hv-match{" found" if this.is_right(guess) else ""}" role="status">'
            f"{escape(verdict)}</p><p>{escape(hint)}</p><p><b>{escape(tally)}</b></p>"
        )
