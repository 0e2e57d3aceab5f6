"""Answer the explorer's questions: a subject, a view and a question in, an answer out.

These are pure functions. An answer is a dictionary for JSON and one file of bytes, such as a
picture. A question that takes seconds reports partial answers.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from hookviz.errors import nearest_names, shorten
from hookviz.explorer.channel import answer_channel, answer_file
from hookviz.explorer.encoding import json_facts
from hookviz.explorer.excites import answer_excites
from hookviz.explorer.kernel import answer_kernel, answer_walk
from hookviz.explorer.layer_choices import answer_layers, answer_tree
from hookviz.explorer.origin import answer_cell
from hookviz.explorer.own_picture import answer_own_picture, answer_stopped
from hookviz.explorer.photograph import answer_field, answer_head, answer_photograph
from hookviz.explorer.question import (
    Answer,
    Answerer,
    Question,
    QuestionError,
    Report,
    ignore_report,
)
from hookviz.explorer.rendering import answer_changes
from hookviz.explorer.subject import Subject
from hookviz.explorer.tiles import answer_tiles
from hookviz.explorer.view import View
from hookviz.explorer.whole import answer_whole, answer_why
from hookviz.language.saying import say


def answer(
    subject: Subject,
    view: View,
    question: Question,
    report: Report = ignore_report,
    others: Mapping[str, Answerer] = MappingProxyType({}),
) -> Answer:
    """Answer a question about a view of a subject.

    The client sorts channels and leaves some out by itself: no answer depends on that.

    Args:
        subject: the network, the image and the caches.
        view: the choices of a person.
        question: its name and facts.
        report: gets partial answers of a question that takes long.
        others: further questions beside `QUESTIONS`, such as those of the page.

    Raises:
        QuestionError: the question does not exist.
        NotThereError: the layer, channel, cell or picture is not there.
        HookVizError: it can't be computed.
    """
    answerer = QUESTIONS.get(question.name) or others.get(question.name)
    if answerer is None:
        near = nearest_names(question.name, QUESTIONS, count=1)
        raise QuestionError(
            say(
                "There is no question {name!r}. The nearest is {suggestion!r}.",
                name=shorten(question.name, 40),
                suggestion=near[0] if near else next(iter(QUESTIONS)),
            )
        )
    facts, data = answerer(subject, replace(view, sort="index", top=None), question.facts, report)
    return Answer(json_facts(facts), data)  # the weights of whoever learns may be no numbers


QUESTIONS: Mapping[str, Answerer] = {
    "head": answer_head,
    "layers": answer_layers,
    "tree": answer_tree,
    "whole": answer_whole,
    "why": answer_why,
    "tiles": answer_tiles,
    "field": answer_field,
    "photograph": answer_photograph,
    "channel": answer_channel,
    "changes": answer_changes,
    "cell": answer_cell,
    "kernel": answer_kernel,
    "walk": answer_walk,
    "excites": answer_excites,
    "own_picture": answer_own_picture,
    "stopped": answer_stopped,
    "file": answer_file,
}
"""Function that answers each question, by the question's name."""
