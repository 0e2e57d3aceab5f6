"""Answer the explorer's questions: a subject, a view and a question in, an answer out.

Pure functions of what they are given. An answer is a dictionary for JSON and, beside it, one file
of bytes such as a picture. A question that takes seconds reports answers on its way.
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
    """Answer a question about what a view shows of a subject.

    Who asks sorts channels and leaves some out, by what the answer about the tiles says of that: no
    answer depends on it.

    Args:
        subject: the network, the image and what is kept.
        view: what is chosen.
        question: what is asked.
        report: gets answers on the way, of a question that takes long.
        others: questions of whoever is around the explorer, beside `QUESTIONS`.

    Raises:
        QuestionError: it is no question that there is.
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
"""The questions that can be asked, and what answers each."""
