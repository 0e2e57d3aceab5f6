"""Draw the game of a channel's name: its patches, four names or a word, and what they show."""

from html import escape

import streamlit as st

from hookviz.atlas.reading import atlas_of
from hookviz.explorer.excites import patches_of
from hookviz.language.saying import say
from hookviz.lessons.maps import maps_of
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.name_channel import (
    GUESSES,
    Round,
    guesses_of,
    label_of,
    rounds_of,
    score,
)
from hookviz.lessons.pictures import photograph
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import choose, pick, picked, remember_link, remember_shown
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import plain

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
            format_func=lambda number: label_of(this.names[number]),
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
    name = label_of(this.names[this.right])
    said = guess if not guess.isdecimal() else label_of(this.names[int(guess) % len(this.names)])
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
