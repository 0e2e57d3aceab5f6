"""Subjects for tests of the explorer's answers, questions about them, and what answers hold."""

import base64
import io
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.capturing.inputs import prepare_input
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Answer, Question, Report, ignore_report
from hookviz.explorer.subject import Pinned, Run, Subject, at_once
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.types import ActivationKey, Model

MEGABYTE = 1 << 20


def cache(megabytes: float = 64) -> ByteCache:
    """An empty cache."""
    limit = int(megabytes * MEGABYTE)
    return Budget(limit).cache(limit)


def subject_of(model: Model, sample: str = "star", **facts: Any) -> Subject:
    """A sample in a network, with a cache of its own."""
    image = hookviz.read_image(next(each.path for each in samples() if each.name == sample))
    return Subject(
        model=model,
        model_input=prepare_input(model, image),
        image=image,
        cache=facts.pop("cache", cache()),
        alt="a yellow star",
        image_title=sample,
        model_title=model.title,
        **facts,
    )


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


_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    "1",
    "",
    -1,
    1.0,
    float("nan"),
    10**6,
    10**30,
    10**5000,
    [0],
    {},
)
NO_NUMBERS = tuple(pytest.param(each, id=f"no number {at}") for at, each in enumerate(_VALUES))
"""What is no number of a channel, a row or a column in a layer of a few."""


def ask(
    subject: Subject,
    question: str,
    view: View | None = None,
    report: Report = ignore_report,
    **facts: Any,
) -> Answer:
    """The answer to a question."""
    return answer(subject, view or View(), Question(question, facts), report)


def asked(subject: Subject, question: str, view: View | None = None) -> Mapping[str, Any]:
    """The facts of an answer."""
    return ask(subject, question, view).facts


def floats(text: str, *shape: int) -> NDArray[np.float32]:
    """What base64 holds, as an array of that shape."""
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def decoded(url: str) -> NDArray[np.uint8]:
    """The pixels of a picture in a URL, RGB."""
    data = base64.b64decode(url.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def read(text: str) -> float:
    """The number that a person reads."""
    return float(text.replace("−", "-").replace(",", ""))
