"""Draw an image as numbers alone, the names to guess among, and what uncovers it."""

import re
from dataclasses import dataclass

import streamlit as st

from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.riddle import (
    LAST,
    NUMBERS,
    UNCOVERED,
    count,
    levels_at,
    offered,
    picture_at,
)
from hookviz.ui.components.riddle import Guess, RiddleView, show_riddle
from hookviz.ui.lessons.picks import pick, picked, remember_shown
from hookviz.ui.state import choose_sample, chosen_sample, shows_sample

_KEPT = re.compile(r"([a-z-]{1,40}) ([0-4]) ([0-4])((?: [a-z-]{1,40}){0,4})")
_OWN = "own"  # what the link calls anybody's own image, which has no names to guess among


@dataclass(frozen=True, slots=True)
class _Guessing:
    """How far an image is uncovered, at which stage it was guessed last, and what was guessed."""

    stage: int = NUMBERS
    guessed_at: int = NUMBERS
    guesses: tuple[str, ...] = ()


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the riddle; the link keeps how far it is uncovered and what was guessed."""
    image = chosen_sample().name if shows_sample() else _OWN
    so_far, side = _so_far(key, image), int(options["side"])
    names = offered(image) if image != _OWN else ()
    remember_shown(key, {UNCOVERED: str(so_far.stage)}, {UNCOVERED: str(NUMBERS)})

    def keep(stage: int, guessed_at: int, *guesses: str) -> None:
        pick(key, "riddle", " ".join((image, str(stage), str(guessed_at), *guesses)))

    # What is done counts from how far it is by now: a quick click comes before the one before it
    # is drawn.
    def uncover(stage: int) -> None:
        now = _so_far(key, image)
        keep(stage, now.guessed_at, *now.guesses)

    def guess(name: str) -> None:
        now = _so_far(key, image)
        if image in now.guesses or name in now.guesses:
            return
        stage = LAST if name == image else now.stage
        keep(stage, now.stage, *now.guesses, name)

    def another() -> None:
        known = [each.name for each in samples()]
        at = known.index(image) if image in known else -1
        pick(key, "riddle", "")
        choose_sample(known[(at + 4) % len(known)])  # so that those beside it look otherwise

    view = RiddleView(
        stage=so_far.stage,
        levels=levels_at(scene, so_far.stage, side),
        picture=picture_at(scene, so_far.stage),
        guesses=[
            Guess(each.name, say(each.title), each.name in so_far.guesses, each.name == image)
            for each in names
        ],
        says=_says(scene, so_far, image, side),
        has_another=shows_sample(),
    )
    show_riddle(view, uncover, guess, another, key=f"riddle-{key}")
    is_open = "hv-riddle-open" if so_far.stage < LAST else ""
    st.html(f'<span class="{is_open}"></span>')  # the sidebar shows no thumbnail of it meanwhile


def _so_far(key: str, image: str) -> _Guessing:
    found = _KEPT.fullmatch(picked(key, "riddle", ""))
    if found is None or found[1] != image:  # another image is another riddle
        return _Guessing()
    return _Guessing(int(found[2]), int(found[3]), tuple(found[4].split()))


def _says(scene: LessonScene, so_far: _Guessing, image: str, side: int) -> str:
    """Return what came of the guesses, in words."""
    whole = count(scene, LAST, side)
    if image in so_far.guesses:
        return say(
            "Right: {title}. You needed {few:,} of {total:,} numbers. Guesses: {tries}.",
            title=say(chosen_sample().title),
            few=count(scene, so_far.guessed_at, side),
            total=whole,
            tries=len(so_far.guesses),
        )
    if so_far.stage == LAST:
        if image == _OWN:
            return say("All {total:,} numbers are uncovered.", total=whole)
        title = say(chosen_sample().title)
        return say("It is: {title}. All {total:,} numbers are uncovered.", title=title, total=whole)
    if so_far.guesses:
        titles = {each.name: say(each.title) for each in samples()}
        return say("Not it: {title}.", title=titles.get(so_far.guesses[-1], so_far.guesses[-1]))
    return ""
