"""Ask about one channel or cell, read what is answered, and numbers that no channel has."""

import base64
import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from hookviz.explorer.answering import answer
from hookviz.explorer.question import Answer, Question, Report, ignore_report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View

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
