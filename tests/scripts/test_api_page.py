"""The page of all public names is up to date, and has every one of them."""

import re

import hookviz
from scripts import api_page


def test_the_page_has_every_public_name_as_the_docstrings_say() -> None:
    written = api_page.PAGE.read_text("utf-8")
    assert written == api_page.page(), "python -m scripts.api_page writes it anew"
    names = re.findall(r"^\| \[`([\w.]+)", api_page.page(), re.MULTILINE)
    edits = [f"edits.{name}" for name in ("add", "keep", "replace", "scale", "zero")]
    assert sorted(names) == sorted([*{*hookviz.__all__} - {"__version__"}, *edits])
