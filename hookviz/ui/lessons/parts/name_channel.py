"""Guess what a channel answers to by the parts of images that excite it most: a game of rounds.

The page draws a channel's patches, four names or a word to write, and the answer.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import streamlit as st

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.reading import PHOTOGRAPH, atlas_of
from hookviz.errors import HookVizError
from hookviz.explorer.excites import patches_of
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.lessons.maps import maps_of
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.lessons.pictures import photograph
from hookviz.models.bundled import BUNDLED
from hookviz.ui.lessons.figures import grid_of
from hookviz.ui.lessons.picks import choose, pick, picked, remember_link, remember_shown
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import plain

GUESSES = "guesses"
"""Among the options what a learner guessed, as `guesses_of` reads it; a lesson's file has none."""

_ROUNDS = 6
_CHOICES = 4
_LEAST_SHARE = 0.5  # of a channel's strongest images that are of one class


@dataclass(frozen=True, slots=True)
class Round:
    """A channel whose strongest images are mostly of one class, and what can be picked.

    Attributes:
        layer: of the channel.
        channel: its number.
        names: classes to pick out of, the right one among them.
        right: which of them is the class.
        agree: how many of its strongest images are of that class.
        among: how many strongest images are known.
    """

    layer: str
    channel: int
    names: tuple[str, ...]
    right: int
    agree: int
    among: int

    def is_right(self, guess: str) -> bool:
        """Return whether a guess is the class: its place among the names, or its name typed."""
        if guess.isdecimal():
            return int(guess) == self.right
        name = self.names[self.right]
        return guess.strip().casefold() in {name.casefold(), _label_of(name).casefold()}


def rounds_of(scene: LessonScene) -> tuple[Round, ...]:
    """Return the rounds for a model; none where there is no atlas of it, or it has no classes."""
    atlas = atlas_of(scene.model)
    return () if atlas is None or len(atlas.classes) < _CHOICES else _rounds(atlas)


@lru_cache(maxsize=8)
def _rounds(atlas: Atlas) -> tuple[Round, ...]:
    """Make a round of each class that a channel answers to most clearly, and keep the clearest."""
    answers = (
        (name, answer)
        for name in atlas.classes
        if name != PHOTOGRAPH
        for answer in atlas.channels_of_class(name, 1)
    )
    found = sorted(
        (
            (answer.share, answer.contrast, name, answer.layer, answer.channel)
            for name, answer in answers
            if answer.share >= _LEAST_SHARE
        ),
        reverse=True,
    )
    made = (_round(atlas, name, layer, channel) for *_, name, layer, channel in found)
    return tuple(each for each in made if each is not None)[:_ROUNDS]


def _round(atlas: Atlas, name: str, layer: str, channel: int) -> Round | None:
    """Return the round of a channel; None where it answers to other classes as much."""
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
    """Return what a class of an atlas is called in the language that is spoken."""
    names = BUNDLED["shapesnet"].categories
    return class_label(names.index(name), names) if name in names else name


def guesses_of(text: str, found: tuple[Round, ...]) -> dict[int, str]:
    """Read what was guessed, such as ``"0=2;1=a wheel"``, by the round; the rest is left out."""
    pairs = (each.partition("=") for each in text.split(";"))
    return {
        int(number): guess
        for number, _, guess in pairs
        if guess and number.isdecimal() and int(number) < len(found)
    }


def score(guesses: Mapping[int, str], found: tuple[Round, ...]) -> int:
    """Return how many guesses are right."""
    return sum(found[at].is_right(guess) for at, guess in guesses.items())


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    found = rounds_of(scene)
    guesses = guesses_of(options.get(GUESSES, ""), found)
    atlas = atlas_of(scene.model)
    told = say("Nothing is guessed yet.")
    if guesses:
        told = say(
            "{right} of {guessed} guesses are right so far.",
            right=score(guesses, found),
            guessed=len(guesses),
        )
    return {
        "rounds": len(found),
        "images": 0 if atlas is None else atlas.counts["tallied"],
        "so_far": told,
    }


def _link(scene: LessonScene, _options: Options) -> Mapping[str, str]:
    found = rounds_of(scene)
    return {"layer": found[0].layer, "channel": str(found[0].channel)} if found else {}


PART = Part(
    name="name-channel",
    sentence="The parts of images that excite a channel most; the learner picks out of four what "
    "it is about, or types it, and sees how many of the strongest images are of that class.",
    facts=_facts,
    link=_link,
)


_LONGEST = 30  # letters of a word that is typed
_WIDTHS = (2, 3)  # of the channel on the image, and of what is said of it


def show(scene: LessonScene, _options: Options, key: str) -> None:
    """Draw a round: the patches, the guess, and after it what the channel's images are."""
    found = rounds_of(scene)
    if not found:
        words = say(
            "No collection of images that excite its channels, sorted into classes, is here of "
            "{model}. ShapesNet and SqueezeNet have one.",
            model=scene.model.title,
        )
        st.info(plain(words), icon=":material/info:")
        return
    guesses = guesses_of(picked(key, "guesses", ""), found)
    at = choose(
        st.segmented_control,
        say("Round"),
        range(len(found)),
        key,
        "round",
        first=0,
        format_func=lambda number: _title(number, guesses, found),
        required=True,
    )
    this = found[at]
    remember_shown(key, {GUESSES: picked(key, "guesses", "")}, {GUESSES: ""})
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
        _reveal(scene, this, guesses[at], score(guesses, found), len(guesses))


def _title(number: int, guesses: dict[int, str], found: tuple[Round, ...]) -> str:
    if number not in guesses:
        return str(number + 1)
    return f"{number + 1} {'✓' if found[number].is_right(guesses[number]) else '✗'}"


def _show_patches(scene: LessonScene, this: Round) -> None:
    atlas = atlas_of(scene.model)
    assert atlas is not None  # there would be no round
    found = patches_of(session_cache(), atlas, this.layer, this.channel)
    pictures = "".join(
        _picture(patch.picture, say("Number {place}", place=place))
        for place, patch in enumerate(found, 1)  # without its name, which would tell
        if patch.picture
    )
    st.html(f'<div class="hv-lesson-patches hv-guessed">{pictures}</div>')


def _picture(url: str, alt: str) -> str:
    return f'<img src="{url}" alt="{escape(alt)}">'


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

    def take_name() -> None:
        chosen = st.session_state[of_names]
        if chosen is not None:
            keep(str(chosen))

    def take_word() -> None:
        keep(st.session_state[of_word])

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            say("What is it about?"),
            range(len(this.names)),
            key=of_names,
            format_func=lambda number: _label_of(this.names[number]),
            on_change=take_name,
            width="content",
        )
        st.text_input(
            say("Or in a word of your own"),
            key=of_word,
            max_chars=_LONGEST,
            on_change=take_word,
            width=190,
        )


def _reveal(scene: LessonScene, this: Round, guess: str, right: int, guessed: int) -> None:
    """Say what the channel's strongest images are of, and show where it answers on the image."""
    name = _label_of(this.names[this.right])
    said = guess if not guess.isdecimal() else _label_of(this.names[int(guess) % len(this.names)])
    verdict = (
        say("Yes, {guess}.", guess=said)
        if this.is_right(guess)
        else say("You said {guess}; most of its images are: {name}.", guess=said, name=name)
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
        st.image(
            photograph(scene, grid_of(values[None]).channel_pixels(0)),
            width="stretch",
            output_format="JPEG",
            alt=say("The map of channel {channel} laid over the image.", channel=this.channel),
        )
    with words:
        st.html(
            f'<p class="hv-match{" found" if this.is_right(guess) else ""}" role="status">'
            f"{escape(verdict)}</p><p>{escape(hint)}</p><p><b>{escape(tally)}</b></p>"
        )
