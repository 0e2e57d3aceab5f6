"""List the lessons to choose from, with what was done of each, known to the browser alone."""

from collections.abc import Callable, Sequence
from typing import Any

from hookviz.language.saying import say, say_count
from hookviz.lessons.lesson import Lesson, Question
from hookviz.lessons.prose import translated
from hookviz.ui.components.files import show


def show_list(lessons: Sequence[Lesson], on_pick: Callable[[str], None]) -> None:
    """Show a card for each lesson; `on_pick` gets the slug of the one chosen."""

    def picked(slug: object) -> None:
        if isinstance(slug, str) and slug in {lesson.slug for lesson in lessons}:
            on_pick(slug)

    data = {"done": say("done"), "lessons": list(map(_card, lessons))}
    show("lesson_list", "lesson-list", data, picked=picked)


def _card(lesson: Lesson) -> dict[str, Any]:
    count = len(lesson.steps)
    return {
        "slug": lesson.slug,
        "number": lesson.number,
        "title": translated(lesson.title),
        "summary": translated(lesson.summary),
        "steps": count,
        "questions": [
            block.line
            for step in lesson.steps
            for block in step.blocks
            if isinstance(block, Question)
        ],
        "facts": say_count("{count} minute", "{count} minutes", lesson.minutes),
        # The browser knows how many, of each number of them what it says.
        "begun": [say("{done} of {count} steps", done=seen, count=count) for seen in range(count)],
    }
