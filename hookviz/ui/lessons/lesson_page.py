"""Draw the list of lessons, and a lesson: one step at a time, its text beside its live parts.

The browser alone knows which steps are done.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from hookviz.classroom.question import read_question
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.errors import HookVizError
from hookviz.language.saying import say, say_count
from hookviz.language.speaking import current, speaking
from hookviz.lessons import prose
from hookviz.lessons.lesson import Block, Lesson, Live, Question, Step, Text
from hookviz.lessons.part import DottedFacts, Fact, LessonScene
from hookviz.lessons.pictures import picture_of
from hookviz.lessons.prose import translated
from hookviz.markup import data_url
from hookviz.ui.classroom.membership import taught
from hookviz.ui.components.files import mount
from hookviz.ui.lessons import choosing
from hookviz.ui.lessons.catalog import lessons
from hookviz.ui.lessons.live_part import SceneChoices, facts_of, show_live
from hookviz.ui.lessons.picks import remembered_options
from hookviz.ui.menu import File, Menu, offer_files, show_menus
from hookviz.ui.state import plain

if TYPE_CHECKING:
    from hookviz.lessons.sheet import Facts

_WAITING_PX = 480  # of the image beside a question


class AnswerHtml(NamedTuple):
    """An answer and its reason as safe HTML, and whether it is right."""

    words: str
    why: str
    right: bool


def _show_question(
    question: str,
    words: str,
    answers: Sequence[AnswerHtml],
    picked: int | None,
    on_pick: Callable[[int], None],
    *,
    key: str,
) -> None:
    """Show a question; reasons of answers that were not picked do not leave the server.

    Args:
        question: its key, by which the browser remembers the answer.
        words: the question, as HTML.
        answers: to pick from.
        picked: the position of the picked answer, if any.
        on_pick: gets the position of a picked answer.
        key: of the widget.
    """

    def chosen(sent: object) -> None:
        match sent:
            case int(position) if 0 <= position < len(answers):
                on_pick(position)

    data = {
        "question": question,
        "words": words,
        "answers": [
            {"words": each.words, **(each._asdict() if position == picked else {})}
            for position, each in enumerate(answers)
        ],
        "picked": picked,
        "right": say("Right."),
        "wrong": say("Not quite."),
        "how": say("Pick an answer, by its letter too: then the lesson goes on."),
    }
    mount("question", key, data, picked=chosen)


def _show_steps(
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
        lesson: the lesson.
        titles: of the steps.
        step: the present one.
        furthest: the last step before an unanswered question.
        answered: lines of the questions with a right answer in this session.
        on_pick: gets a picked step.
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
    mount("lesson_steps", "lesson-steps", data, picked=picked)


def _show_list(lessons: Sequence[Lesson], on_pick: Callable[[str], None]) -> None:
    """Show a card for each lesson; `on_pick` gets the slug of the chosen one."""

    def picked(slug: object) -> None:
        if isinstance(slug, str) and slug in {lesson.slug for lesson in lessons}:
            on_pick(slug)

    data = {"done": say("done"), "first": say("Start here"), "lessons": list(map(_card, lessons))}
    mount("lesson_list", "lesson-list", data, picked=picked)


@cache
def _picture_url(picture: Path | None) -> str:
    return "" if picture is None else data_url(picture.read_bytes(), "jpeg")


def _card(lesson: Lesson) -> dict[str, Any]:
    count = len(lesson.steps)
    return {
        "slug": lesson.slug,
        "number": lesson.number,
        "title": translated(lesson.title),
        "summary": translated(lesson.summary),
        "question": translated(lesson.question) if lesson.question else "",
        "picture": _picture_url(lesson.picture),
        "steps": count,
        "questions": [
            block.line
            for step in lesson.steps
            for block in step.blocks
            if isinstance(block, Question)
        ],
        "facts": say_count("{count} minute", "{count} minutes", lesson.minutes),
        # for each number of steps, which the browser knows
        "begun": [say("{done} of {count} steps", done=done, count=count) for done in range(count)],
    }


def show_lessons() -> None:
    """Draw the list of all lessons, and the button back to the explorer."""
    with st.container(key="hv-lessons"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader(say("Lessons"), anchor=False, width="content")
            st.button(
                say("To the explorer"),
                icon=":material/arrow_back:",
                key="hv-to-explorer",
                type="tertiary",
                on_click=choosing.leave,
            )
        st.caption(
            say(
                "Everything in them is live: they run on the model and the image in the sidebar. "
                "What you have done stays in this browser."
            )
        )
        _show_list(lessons(), choosing.go_to_lesson)


def show_lesson(
    lesson: Lesson, scene: LessonScene, choices: SceneChoices, *, instead_of: str = ""
) -> None:
    """Draw the lesson's step in the link, on the scene; `instead_of` is the chosen model."""
    number = choosing.step_of(lesson)
    step = lesson.steps[number - 1]
    _show_head(lesson, number, choices)
    line = st.empty()  # on every run: the lesson below stays in position
    first_facts = facts_of(step, scene, line=line)
    keys = [f"{lesson.slug}-{number}-{position}" for position in range(len(step.blocks))]
    changed = {position: remembered_options(key) for position, key in enumerate(keys)}
    facts = facts_of(step, scene, changed, line) if any(changed.values()) else first_facts
    blocks = _until_unanswered(lesson, step)
    with st.container(key="hv-lesson"):
        st.html(
            f'<h2 class="hv-step-title" tabindex="-1" data-step="{lesson.slug} {number}">'
            f"{_title(step, facts, lesson)}</h2>"
        )
        note = ""
        if instead_of:
            note = say(
                "This lesson runs on {model}: {other} is built in another way.",
                model=scene.model.title,
                other=instead_of,
            )
        elif scene.model.weights == "random":
            note = say("These weights are random: what the text says of training is not so here.")
        if note:
            st.html(f'<p class="hv-untrained">{escape(note)}</p>')
        if any(isinstance(block, Live) for block in step.blocks):
            words, live = st.columns([2, 3], gap="medium")
        else:
            words = live = st.container(key="hv-lesson-alone")
        for position, block in enumerate(blocks):
            column = live if isinstance(block, Live) else words
            with column, st.container(key=f"hv-block-{position + 1}"):
                if isinstance(block, Live):
                    show_live(choices, block, keys[position], changed[position])
                else:  # a question keeps its facts, since its answers are about them
                    own = first_facts if isinstance(block, Question) else facts
                    _show_block(lesson, block, own, keys[position])
        if number == len(lesson.steps) and not _has_open_question(lesson, step):
            with words, st.container(key="hv-lesson-end"):
                _offer_next(lesson)
        waiting = step.blocks[len(blocks) :]
        if live is not words and any(isinstance(block, Live) for block in waiting):
            with live:
                has_part = any(isinstance(block, Live) for block in blocks)
                _show_waiting(None if has_part else scene)


def _show_waiting(scene: LessonScene | None) -> None:
    """Show that the step waits for an answer, below the scene's image, if any."""
    picture = ""
    if scene is not None:
        jpeg = encode_jpeg(shrunk(picture_of(scene), _WAITING_PX), quality=90)
        picture = f'<img src="{data_url(jpeg, "jpeg")}" alt="">'
    waits = escape(say("This waits for your answer."))
    st.html(f'<div class="hv-waits">{picture}<p>{waits}</p></div>')


def _show_head(lesson: Lesson, number: int, choices: SceneChoices) -> None:
    """Draw the lesson's name, its steps, and the buttons *Back* and *Next*."""
    titles = [
        prose.as_plain(step.title, DottedFacts(), lesson.file, step.line) for step in lesson.steps
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="hv-lesson-head"):
        with st.container(width="content", key="hv-lesson-back"):
            st.button(
                say("All lessons"),
                icon=":material/school:",
                key="hv-all-lessons",
                type="tertiary",
                on_click=choosing.go_to_lesson,
                args=(choosing.ALL,),
            )
        title = prose.translated(lesson.title)
        name = say("Lesson {number}: {title}", number=lesson.number, title=title)
        st.html(f'<p class="hv-lesson-name">{escape(name)}</p>', width="stretch")
        furthest = _furthest(lesson, number)
        last = number == len(lesson.steps)
        why = ""  # *Next* is disabled
        if number >= furthest and not last:
            why = say("Next: after your answer")
        elif last:
            why = say("The last step")
        # a container on every run: the dots stay in position
        with st.container(width="content", key="hv-lesson-why"):
            if why:
                st.html(f'<p class="hv-why-not">{escape(why)}</p>', width="content")
        show_menus(_sheet_menu(lesson, choices))
        with st.container(width="content", key="hv-lesson-steps"):
            _show_steps(
                lesson,
                titles,
                step=number,
                furthest=furthest,
                answered=_answered_rightly(lesson),
                on_pick=choosing.go_to_step,
            )
        _neighbour(say("Back"), "previous", "P", number - 1, disabled=number == 1)
        _neighbour(say("Next"), "next", "N", number + 1, disabled=last or number >= furthest)


def _neighbour(label: str, key: str, shortcut: str, step: int, *, disabled: bool) -> None:
    icons = {"previous": "chevron_left", "next": "chevron_right"}
    st.button(
        label,
        icon=f":material/{icons[key]}:",
        key=f"hv-{key}",
        shortcut=shortcut,
        disabled=disabled,
        on_click=choosing.go_to_step,
        args=(step,),
    )


def _title(step: Step, facts: Mapping[str, Fact], lesson: Lesson) -> str:
    try:
        return prose.inline_html(step.title, facts, lesson.file, step.line)
    except HookVizError as error:
        return escape(str(error))


def _until_unanswered(lesson: Lesson, step: Step) -> Sequence[Block]:
    """Return the blocks of a step up to the first unanswered question."""
    for position, block in enumerate(step.blocks):
        if _is_open(lesson, block):
            return step.blocks[: position + 1]
    return step.blocks


def _answered_rightly(lesson: Lesson) -> list[int]:
    """Return the lines of questions with a right answer, which alone mark a step as done."""
    return [
        block.line
        for step in lesson.steps
        for block in step.blocks
        if isinstance(block, Question) and choosing.is_answered_rightly(lesson, block)
    ]


def _is_open(lesson: Lesson, block: Block) -> bool:
    return isinstance(block, Question) and not choosing.is_answered(lesson, block)


def _has_open_question(lesson: Lesson, step: Step) -> bool:
    return any(_is_open(lesson, block) for block in step.blocks)


def _offer_next(lesson: Lesson) -> None:
    """Show, at a lesson's end, the button to the next lesson."""
    following = next((other for other in lessons() if other.number == lesson.number + 1), None)
    if following is None:
        return
    st.button(
        say("Go on with: {title}", title=prose.translated(following.title)),
        icon=":material/arrow_forward:",
        key="hv-next-lesson",
        on_click=choosing.go_to_lesson,
        args=(following.slug,),
    )


def _furthest(lesson: Lesson, number: int) -> int:
    """Return the step of the first unanswered question from a step on, or the last step."""
    later = enumerate(lesson.steps[number - 1 :], number)
    return next((at for at, step in later if _has_open_question(lesson, step)), len(lesson.steps))


def _show_block(
    lesson: Lesson, block: Text | Question, facts: Mapping[str, Fact], key: str
) -> None:
    try:
        match block:
            case Text():
                html = prose.as_html(block.words, facts, lesson.file, block.line)
                st.html(f'<div class="hv-lesson-text">{html}</div>')
            case Question():
                _ask(lesson, block, facts, key)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _ask(lesson: Lesson, question: Question, facts: Mapping[str, Fact], key: str) -> None:
    def html(words: str) -> str:
        return prose.inline_html(words, facts, lesson.file, question.line)

    def text(words: str) -> str:
        return prose.as_plain(words, facts, lesson.file, question.line)

    answer_key = choosing.question_key(lesson, question)

    def take(position: int) -> None:
        st.session_state[answer_key] = position

    _show_question(
        answer_key,
        html(question.words),
        [
            AnswerHtml(html(answer.words), html(answer.why), answer.right)
            for answer in question.answers
        ],
        st.session_state.get(answer_key),
        take,
        key=f"question-{key}",
    )
    _offer_to_ask(question, text, key=f"hv-ask-{key}")


def _offer_to_ask(question: Question, text: Callable[[str], str], *, key: str) -> None:
    """Show a button that asks the class this question, if the session teaches one.

    Args:
        question: of the lesson.
        text: returns the lesson's words with their facts and without markup.
        key: of the button.

    Raises:
        ClassroomError: a class can't be asked this; an answer is too long, for example.
    """
    teaching = taught()
    if teaching is None:
        return
    clicked = st.button(
        say("Ask the class"),
        icon=":material/help:",
        key=key,
        help=say("A question on the screens of all who follow"),
    )
    if clicked:
        answers = (text(answer.words) for answer in question.answers)
        right = next((at for at, each in enumerate(question.answers) if each.right), None)
        teaching[0].ask(read_question(text(question.words), answers, right=right))


def _sheet_menu(lesson: Lesson, choices: SceneChoices) -> Menu:
    """Return the menu of the printable sheets, with the page's model and image."""
    return Menu(
        say("Print"),
        "print",
        "menu-sheet",
        lambda: offer_files(_files(lesson, choices)),
        say("The lesson as a sheet: with its questions, or with the answers too."),
    )


def _files(lesson: Lesson, choices: SceneChoices) -> Sequence[File]:
    with choices.scene() as scene:
        facts = [facts_of(step, scene) for step in lesson.steps]
        subtitle = say("{model} on {image}", model=scene.model.title, image=scene.image.name)
    make = partial(_make_sheet, current(), lesson, facts, subtitle)
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


def _make_sheet(
    language: str, lesson: Lesson, facts: "Facts", subtitle: str, *, answers: bool
) -> bytes:
    """Make the PDF file in the page's language."""
    from hookviz.lessons.sheet import sheet  # noqa: PLC0415 - loads reportlab

    with speaking(language):
        return sheet(lesson, facts, subtitle, answers=answers)
