"""Tests for the documentation's site: links hold, tutorials run, both languages say the same."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hookviz
from scripts import docs_site
from scripts.fenced_examples import fenced

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
PAGES = sorted(file for file in SITE.rglob("*.md") if not file.name.endswith(".zh.md"))
of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


def runs(program: str, folder: Path) -> None:
    """Hold a program to end well in a process of its own, beside a photograph."""
    shutil.copyfile(ROOT / "assets" / "samples" / "cat.jpg", folder / "photo.jpg")
    command = [sys.executable, "-W", "ignore", "-c", program]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_every_link_leads_to_a_page_a_picture_or_the_repository(tmp_path: Path) -> None:
    docs_site.assemble(tmp_path, "https://example.org/hookviz")
    (tmp_path / docs_site.LIVE).touch()
    for page in tmp_path.rglob("*.md"):
        prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            if not re.match(r"https?:|#|\?|mailto:", link):
                assert (page.parent / link.partition("#")[0]).is_file(), (page.name, link)
    versions = (tmp_path / "versioning.md").read_text("utf-8")
    assert "https://example.org/hookviz/blob/main/hookviz/ui/streamlit_internals.py" in versions


def test_a_link_to_a_file_that_is_not_there_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "tree"
    shutil.copytree(SITE, root / "docs" / "site")
    for page in (root / "docs" / "site").rglob("*.md"):
        page.write_text("")
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (root / name).touch()
    (root / "docs" / "page.md").write_text("[gone](nowhere.md)")
    monkeypatch.setattr(docs_site, "ROOT", root)
    with pytest.raises(FileNotFoundError, match=r"page.md links to nowhere.md"):
        docs_site.assemble(tmp_path / "site")


def test_the_reference_names_every_public_name(tmp_path: Path) -> None:
    docs_site.assemble(tmp_path)
    named = re.findall(r"^::: hookviz\.(\w+)$", (tmp_path / "api.md").read_text("utf-8"), re.M)
    assert {*named, "__version__"} == set(hookviz.__all__)


def test_doctests_are_code_in_the_reference() -> None:
    text = "Add.\n\n>>> a = [1]\n>>> a[0]\n1\n\nMore [words](x)."
    assert fenced(text) == ("Add.\n\n```python\n>>> a = [1]\n>>> a[0]\n1\n```\n\nMore [words](x).")


@of_each_page
def test_both_languages_have_the_same_code_links_and_pictures(page: Path) -> None:
    chinese = page.with_suffix(".zh.md")
    for language in ("python", "sh"):
        assert blocks(page, language) == blocks(chinese, language)
    english_text, chinese_text = page.read_text("utf-8"), chinese.read_text("utf-8")
    for what in (r"\]\(([^)\s]+)\)", r"^(#+) ", r"^(\d\.|-) "):
        assert re.findall(what, english_text, re.M) == re.findall(what, chinese_text, re.M), what


@pytest.mark.parametrize("name", ["curious", "own-network", "training"])
def test_a_tutorials_code_runs(name: str, tmp_path: Path) -> None:
    runs("\n".join(blocks(SITE / "tutorials" / f"{name}.md", "python")), tmp_path)


def test_the_tutorials_lens_counts_what_a_capture_has(tmp_path: Path) -> None:
    (code,) = blocks(SITE / "tutorials" / "lens.md", "python")
    program = f"""{code}
import hookviz
model = hookviz.load_model("shapesnet")
capture = hookviz.capture(model, "photo.jpg")
(panel,), numbers = run(Subject(model, hookviz.prepare(model, "photo.jpg"), None))
expected = [float((layer.values <= 0).float().mean()) for layer in capture.values()]
assert np.allclose(numbers["zeros"], expected), numbers
assert len(panel.rows) == len(expected)
"""
    runs(program, tmp_path)
