"""Show a lesson's steps as dots, with what was done of it, known to the browser alone."""

from collections.abc import Callable, Collection

from hookviz.language.saying import say
from hookviz.lessons.lesson import Lesson, Question
from hookviz.ui.components.files import show


def show_steps(
    lesson: Lesson,
    titles: list[str],
    *,
    step: int,
    furthest: int,
    answered: Collection[int],
    on_pick: Callable[[int], None],
) -> None:
    """Show a dot for each step, from 1.

    Args:
        lesson: whose.
        titles: of the steps, as they are read.
        step: which of them is shown.
        furthest: the last one that can be gone to before a question is answered.
        answered: lines of the questions that were answered rightly in this session.
        on_pick: gets the step that was picked.
    """

    def picked(sent: object) -> None:
        match sent:
            case int(number) if 1 <= number <= len(titles):
                on_pick(number)

    steps = [
        {
            "number": number,
            "title": title,
            "says": say("Step {number}: {title}", number=number, title=title),
            "saysDone": say("Step {number}, done: {title}", number=number, title=title),
            "questions": [each.line for each in one.blocks if isinstance(each, Question)],
        }
        for number, (one, title) in enumerate(zip(lesson.steps, titles, strict=True), 1)
    ]
    data = {
        "label": say("Steps of the lesson"),
        "slug": lesson.slug,
        "steps": steps,
        "step": step,
        "furthest": furthest,
        "answered": list(answered),
    }
    show("lesson_steps", "lesson-steps", data, picked=picked)
