"""The page as Streamlit runs it, without a browser."""

import re
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

import hookviz
from hookviz.lessons.lesson import Lesson, Question
from hookviz.ui.lessons.choosing import question_key

SCRIPT = Path(hookviz.__file__).parent / "ui" / "main.py"


def opened(answers: Lesson | None = None, /, **query: str) -> AppTest:
    """The page of a link, which no exception ended; all questions of a lesson are answered."""
    page = AppTest.from_file(str(SCRIPT), default_timeout=300)
    page.query_params.update(query)
    for step in answers.steps if answers else ():
        for block in step.blocks:
            if isinstance(block, Question):
                page.session_state[question_key(answers, block)] = 0  # type: ignore[arg-type]
    return ran(page)


def ran(page: AppTest) -> AppTest:
    """The page after another run, which no exception ended."""
    page.run()
    assert not page.exception, (dict(page.query_params), page.exception)
    return page


def texts(elements: Any) -> str:
    """As a person reads them, without the marks around the glossary's words."""
    written = "\n".join(element.value for element in elements).replace("\\", "")
    return re.sub(r"</?span[^>]*>", "", written)


def click(page: AppTest, label: str) -> None:
    next(button for button in page.button if button.label == label).click().run()


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def give(page: AppTest, name: str, content: bytes) -> None:
    """Choose a file in the page's first uploader."""
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([(name, content, "application/octet-stream")])
    ran(page)


def drawn(page: AppTest) -> str:
    """All that is written as HTML, with its marks."""
    return "".join(str(element.proto) for element in page.get("html"))
