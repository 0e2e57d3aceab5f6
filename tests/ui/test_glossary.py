"""The glossary on the page, and as a document."""

import re
from pathlib import Path

import pytest

from hookviz.ui.glossary import document, marked, term

DOCUMENT = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_document_has_the_same_words() -> None:
    assert DOCUMENT.read_text("utf-8") == document(), (
        "write it again: python -c 'from hookviz.ui.glossary import document; "
        f'print(document(), end="")\' > {DOCUMENT.name}'
    )


def test_names_from_files_stay_text() -> None:
    html = marked("<b onclick=x>bias</b> *a*")
    assert re.findall(r"<(\w+)", html) == ["b", "span"]
    assert html.startswith("\\<b ")
    assert r"\*a\*" in html
    with pytest.raises(KeyError):
        term("no such word")
