"""Answer what a lens shows of the image and network on the screen, small: the question ``lens``.

What takes longer than a moment is not waited for: a sample's picture stands in its place.
"""

import time
from collections.abc import Mapping
from typing import Any

from hookviz.errors import HookVizError, UnknownNameError
from hookviz.explorer import subject as explorer
from hookviz.explorer.question import Answer, NotThereError, Report
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.preview import SmallAnswer, answer_of_sample, small_answer
from hookviz.lenses.contract.running import find_lens

LONGEST = 2.0
"""Seconds for which a lens may compute for its small picture, its waits for others aside."""


class _TooDearError(BaseException):
    """Ends a run that takes longer; no handler of errors on its way catches it."""


def answer_lens(
    subject: explorer.Subject, _view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the small answer of the lens that ``lens`` names: a picture, or rows of a table.

    Raises:
        NotThereError: there is no such lens.
    """
    try:
        lens = find_lens(str(facts.get("lens", "")))
    except UnknownNameError as error:
        raise NotThereError(str(error)) from error
    key = ("small answer", current(), *subject.key, lens.slug)
    answer: SmallAnswer | None = subject.cache.get(key)
    if answer is None:
        answer = answer_of_sample(lens) if lens.preview.is_dear else _computed(lens, subject)
        subject.cache.put(key, answer, len(answer.picture) + 1000)
    return Answer({"rows": answer.rows, "ofSample": answer.of_sample}, answer.picture)


def _computed(lens: Lens, asked: explorer.Subject) -> SmallAnswer:
    with asked.take_turn(say(lens.title), "preview", "") as run:
        until = time.thread_time() + LONGEST

        def progress(_share: float) -> None:
            if time.thread_time() > until:
                raise _TooDearError

        subject = Subject(
            *(asked.model, asked.model_input, asked.image, asked.cache),
            progress=run.yielding(progress),
        )
        try:
            return small_answer(lens, subject)
        except (_TooDearError, HookVizError):
            return answer_of_sample(lens)
