"""The page as Streamlit runs it, without a browser."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from streamlit.testing.v1 import AppTest

import hookviz
from hookviz.lessons.lesson import Lesson, Question
from hookviz.ui.lessons.choosing import question_key
from hookviz.ui.link import view_words

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


def link_of(page: AppTest) -> dict[str, str]:
    """All words of the page's link: those of the query, and those of the fragment."""
    values = page.query_params.items()
    query = {name: value if isinstance(value, str) else value[-1] for name, value in values}
    view: dict[str, str] = page.session_state["_address"].view
    return {name: text for name, text in query.items() if name not in view_words()} | view


def write_fragment(page: AppTest, **view: str) -> None:
    """Change the view in the address's fragment, as the explorer's client does."""
    address = page.session_state["_address"]
    address.receive({"fragment": urlencode(address.view | view), "number": address.number})


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
