"""Offer the lesson's printable sheets as files to download."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hookviz.language.saying import say
from hookviz.language.speaking import current, speaking
from hookviz.lessons.lesson import Lesson
from hookviz.ui.explorer.file_menu import File, offer
from hookviz.ui.lessons.lesson_scene import SceneChoices, facts_of
from hookviz.ui.menu import Menu

if TYPE_CHECKING:
    from hookviz.lessons.sheet import Facts


def sheet_menu(lesson: Lesson, choices: SceneChoices) -> Menu:
    """Return the menu of both sheets, questions and answers; numbers are of what is on the page."""
    return Menu(
        say("Print"),
        "print",
        "menu-sheet",
        lambda: offer(_files(lesson, choices)),
        say("The lesson as a sheet: with its questions, or with the answers too."),
    )


def _files(lesson: Lesson, choices: SceneChoices) -> Sequence[File]:
    with choices.scene() as scene:
        facts = [facts_of(step, scene) for step in lesson.steps]
        shown_on = say("{model} on {image}", model=scene.model.title, image=scene.image.name)
    make = partial(_make, current(), lesson, facts, shown_on)
    return (
        File(
            say("Sheet with questions"),
            partial(make, answers=False),
            f"{lesson.slug}.pdf",
            "application/pdf",
        ),
        File(
            say("Sheet with answers"),
            partial(make, answers=True),
            f"{lesson.slug}-answers.pdf",
            "application/pdf",
        ),
    )


def _make(language: str, lesson: Lesson, facts: "Facts", shown_on: str, *, answers: bool) -> bytes:
    """Make the file, in the language of the page that it was asked for from."""
    from hookviz.lessons.sheet import sheet  # noqa: PLC0415 - reportlab, for who prints alone

    with speaking(language):
        return sheet(lesson, facts, shown_on, answers=answers)
