"""What tests of the explorer's answers ask about: a network, an image, and who counts the turns."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import hookviz
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.capturing.inputs import prepare
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Answer, Question
from hookviz.explorer.subject import Pinned, Run, Subject, at_once
from hookviz.explorer.view import View
from hookviz.images.reading import read
from hookviz.images.samples import samples
from hookviz.types import ActivationKey, Model

MEGABYTE = 1 << 20


def cache(megabytes: float = 64) -> ByteCache:
    """An empty cache."""
    limit = int(megabytes * MEGABYTE)
    return Budget(limit).cache(limit)


def subject_of(model: Model, sample: str = "star", **facts: Any) -> Subject:
    """A sample in a network, with a cache of its own."""
    image = read(next(each.path for each in samples() if each.name == sample))
    return Subject(
        model=model,
        model_input=prepare(model, image),
        image=image,
        cache=facts.pop("cache", cache()),
        alt="a yellow star",
        image_title=sample,
        model_title=model.title,
        **facts,
    )


def asked(subject: Subject, question: str, view: View | None = None) -> Mapping[str, Any]:
    """The facts of an answer."""
    return whole(subject, question, view).facts


def whole(subject: Subject, question: str, view: View | None = None) -> Answer:
    """An answer with its picture."""
    return answer(subject, view or View(), Question(question))


def pinned(subject: Subject, step: str, **names: str) -> Pinned:
    """A step's output for a subject's image, as it is pinned."""
    facts = {
        "link": f"{subject.image_title}/{step}",
        "digest": subject.model.digest,
        "image": subject.image_title,
        "title": subject.model_title,
        "step": step,
    }
    layer = ActivationKey.read(step).layer
    return Pinned(
        **(facts | names),
        read=lambda: hookviz.capture(subject.model, subject.model_input, layer)[step].values,
        run=None,
    )


class Turns:
    """Turns to compute, as they were asked for."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []

    def __call__(self, label: str, kind: str, layer: str) -> AbstractContextManager[Run]:
        return self._turn(label, kind, layer)

    @contextmanager
    def _turn(self, label: str, kind: str, layer: str) -> Iterator[Run]:
        self.taken.append((label, kind, layer))
        with at_once(label, kind, layer) as run:
            yield run


def words(parts: Any) -> str:
    """A sentence from its parts."""
    return "".join(part[0] for part in parts)
