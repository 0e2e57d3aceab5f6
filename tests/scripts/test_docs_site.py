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


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


def run_all(programs: list[str], folder: Path) -> None:
    """Hold programs to end well, one after the other in one process, beside a photograph."""
    shutil.copyfile(ROOT / "assets" / "samples" / "cat.jpg", folder / "photo.jpg")
    each = f"for program in {programs!r}: exec(program, {{'__name__': '__main__'}})"
    command = [sys.executable, "-W", "ignore", "-c", each]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_every_link_leads_to_a_page_a_picture_or_the_repository(tmp_path: Path) -> None:
    docs_site.assemble(tmp_path, "https://example.org/hookviz")
    (tmp_path / "article").mkdir()
    for made in docs_site.MADE:
        (tmp_path / made).touch()
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


def test_a_part_of_a_page_has_one_anchor_in_both_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "tree" / "docs"
    docs.mkdir(parents=True)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "docs/site/index.md", "docs/site/index.zh.md"):
        (docs.parent / name).parent.mkdir(exist_ok=True)
        (docs.parent / name).touch()
    (docs / "a.md").write_text("# A\n\nEnglish · [简体中文](a.zh.md)\n\n[there](b.md#the-part)\n")
    (docs / "a.zh.md").write_text("# 甲\n\n[English](a.md) · 简体中文\n\n[那里](b.zh.md#部分)\n")
    (docs / "b.md").write_text("# B\n\n````md\n```x\n# no\n```\n````\n\n## The part\n")
    (docs / "b.zh.md").write_text(
        "# 乙\n\n````md\n```x\n# no\n```\n````\n\n## 部分\n\n[见](#部分)\n"
    )
    monkeypatch.setattr(docs_site, "ROOT", docs.parent)
    docs_site.assemble(tmp_path / "site")
    assert (tmp_path / "site/a.md").read_text() == "# A\n\n[there](b.md#the-part)\n"
    assert (tmp_path / "site/a.zh.md").read_text() == "# 甲 {#a}\n\n[那里](b.md#the-part)\n"
    chinese = (tmp_path / "site/b.zh.md").read_text()
    assert (
        chinese
        == "# 乙 {#b}\n\n````md\n```x\n# no\n```\n````\n\n## 部分 {#the-part}\n\n[见](#the-part)\n"
    )


def test_the_reference_names_every_public_name_and_doctests_are_code(tmp_path: Path) -> None:
    docs_site.assemble(tmp_path)
    named = re.findall(r"^::: hookviz\.(\w+)$", (tmp_path / "api.md").read_text("utf-8"), re.M)
    assert {*named, "__version__"} == set(hookviz.__all__)
    text = "Add.\n\n>>> a = [1]\n>>> a[0]\n1\n\nMore [words](x)."
    assert fenced(text) == ("Add.\n\n```python\n>>> a = [1]\n>>> a[0]\n1\n```\n\nMore [words](x).")


@pytest.mark.by_day
def test_the_tutorials_code_runs_and_their_lens_counts_what_a_capture_has(tmp_path: Path) -> None:
    programs = [
        "\n".join(blocks(SITE / "tutorials" / f"{name}.md", "python"))
        for name in ("curious", "own-network", "training")
    ]
    (code,) = blocks(SITE / "tutorials" / "lens.md", "python")
    program = f"""{code}
import hookviz
model = hookviz.load_model("shapesnet")
capture = hookviz.capture(model, "photo.jpg")
(panel,), numbers = run(Subject(model, hookviz.prepare_input(model, "photo.jpg"), None))
expected = [float((layer.values <= 0).float().mean()) for layer in capture.values()]
assert np.allclose(numbers["zeros"], expected), numbers
assert len(panel.rows) == len(expected)
"""
    run_all([*programs, program], tmp_path)
