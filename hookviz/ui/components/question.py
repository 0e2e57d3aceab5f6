"""Ask a question whose answers are large buttons; below them the reason for the one picked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hookviz.language.saying import say
from hookviz.ui.components.files import show


class AnswerHtml(NamedTuple):
    """An answer and its reason as HTML without anybody's own tags, and whether it is right."""

    words: str
    why: str
    right: bool


def show_question(
    words: str,
    answers: Sequence[AnswerHtml],
    picked: int | None,
    on_pick: Callable[[int], None],
    *,
    key: str,
) -> None:
    """Show the question; reasons of answers that were not picked do not leave the server.

    Args:
        words: what is asked, as HTML.
        answers: what can be picked.
        picked: the position of the answer that was, if any.
        on_pick: gets the position of the one that is picked.
        key: of the widget.
    """

    def chosen(sent: object) -> None:
        match sent:
            case int(position) if 0 <= position < len(answers):
                on_pick(position)

    data = {
        "words": words,
        "answers": [
            {"words": each.words, **(each._asdict() if position == picked else {})}
            for position, each in enumerate(answers)
        ],
        "picked": picked,
        "right": say("Right."),
        "wrong": say("Not quite."),
        "how": say(
            "Pick an answer, by its letter too: then the lesson goes on.",
        ),
    }
    show("question", key, data, picked=chosen)
