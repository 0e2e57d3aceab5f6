"""What the documents name exists, and what exists is in the documents."""

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from PIL import Image

import hookviz
from hookviz.cli.main import COMMANDS
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.settings import Settings

ROOT = Path(__file__).parent.parent
SITE = set(ROOT.glob("docs/site/**/*.md"))  # tests/scripts/test_docs_site.py looks at these
DOCUMENTS = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "assets" / "README.md"} - SITE
)
EVERY = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


FENCED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.DOTALL | re.MULTILINE)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def without_code(document: Path) -> str:
    return FENCED.sub("", document.read_text("utf-8"))


def anchors(document: Path) -> list[str]:
    """The names that GitHub gives a document's headings, in their order."""
    headings = re.findall(r"^#+ (.+)$", without_code(document), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@EVERY
def test_links_lead_somewhere(document: Path) -> None:
    text = without_code(document)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    for link in links:
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@EVERY
def test_public_names_in_code_exist(document: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", document.read_text("utf-8"), re.S | re.M)
    for block in blocks:
        compile(block, document.name, "exec")
        assert set(re.findall(r"\bhookviz\.(\w+)", block)) <= set(hookviz.__all__)


def named_paths(document: str) -> set[str]:
    folders = "hookviz|scripts|tests|assets|docs|examples"
    paths = set(re.findall(rf"`((?:{folders})/[\w./-]+)`", text_of(document)))
    return {path for path in paths if "NAME" not in path}


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_named_files_exist(document: str) -> None:
    paths = named_paths(document)
    assert len(paths) >= 12
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / f"{path}.py").exists(), path


def test_every_room_command_and_version_is_named() -> None:
    text = text_of("docs/architecture.md")
    packages = {path.parent.name for path in (ROOT / "hookviz").glob("*/__init__.py")}
    packages |= {path.stem for path in (ROOT / "hookviz").glob("[a-z]*.py")}
    assert {room for room in packages if f"`{room}`" not in text} == set()
    assert text.partition("| to change | open |")[2].count("\n| ") >= 20
    shown = set(re.findall(r"^hookviz (\w+)", text_of("docs/shell.md"), re.MULTILINE))
    assert shown == set(COMMANDS)
    assert f"\n## {hookviz.__version__}" in text_of("CHANGELOG.md")


def test_every_setting_is_in_the_table_with_its_default() -> None:
    rows = re.findall(
        r"^\| `HOOKVIZ_(\w+)` \| *(.*?) ?\|", text_of("docs/settings.md"), re.MULTILINE
    )
    table = dict(rows)
    assert len(table) == len(rows)
    assert set(table) == {setting.name.upper() for setting in fields(Settings)}
    for setting in fields(Settings):
        said = table[setting.name.upper()]
        in_words = "zero" in setting.metadata and said != "0"  # what a 0 stands for
        assert in_words or said == str(setting.default), setting.name


@pytest.mark.parametrize(("file", "language"), [("lenses.md", "en"), ("lenses.zh.md", "zh_CN")])
def test_every_lens_is_described(file: str, language: str) -> None:
    named = re.findall(r"<br>([^<]+)<br>\*\*(.+?)\*\*", text_of(f"docs/{file}"))
    with speaking(language):
        lenses = {(say(lens.question), say(lens.title)) for lens in hookviz.list_lenses()}
    assert set(named) == lenses


def test_the_readme_is_one_screen() -> None:
    text = text_of("README.md")
    assert len(text.splitlines()) <= 40
    assert re.findall(r"^make .*$", text, re.MULTILINE) == ["make run", "make test"]
    assert len(re.findall(r"\*\*\[[^]]+\]\([^)]+\)\*\*", text)) == 3  # links


@pytest.mark.parametrize("language", ["", ".zh"])
def test_the_picture_of_the_readme_moves(language: str) -> None:
    file = ROOT / f"docs/pictures/moving{language}.webp"
    assert f"(docs/pictures/{file.name})" in text_of(f"README{language}.md")
    with Image.open(file) as film:
        assert int(getattr(film, "n_frames", 1)) > 10
    assert file.stat().st_size < 1_000_000


TWINS = sorted(
    file.relative_to(ROOT).as_posix().removesuffix(".zh.md")
    for file in {*DOCUMENTS, *SITE}
    if file.name.endswith(".zh.md")
)


def same_link(name: str, link: str) -> str:
    """Return a link as it is in any language: to a document, and to a heading by its number."""
    file, _, anchor = link.partition("#")
    if anchor and not file.startswith("http"):
        target = ROOT / name if not file else (ROOT / name).parent / file
        file += f"#{anchors(target).index(anchor)}"
    return re.sub(r"\.zh\.(png|webp|md)(?=$|#)", r".\1", file)


def skeleton(name: str) -> dict[str, list[Any]]:
    """What a document has in any language; a link to it in the other one is the same in both.

    So is a picture of the page, or a document, in that language.
    """
    text = text_of(name)
    prose = FENCED.sub("", text)
    shown = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", prose)
    without_links = re.sub(r"\]\([^)]+\)", "", prose)
    parts = re.split(r"\n\n|\n(?=- |\||\d+\. |#)", without_links)
    return {
        "headings": re.findall(r"^(#+) ", prose, re.MULTILINE),
        "code": [found[0] for found in FENCED.finditer(text)],
        "links and pictures": [(sign, same_link(name, link)) for sign, link in shown],
        "points": re.findall(r"^- ", prose, re.MULTILINE),
        "facts": [found for found in map(facts_of, parts) if found],
    }


def facts_of(part: str) -> list[str]:
    """Return what a paragraph, a point or a row has in any language, in whatever order there."""
    names = [" ".join(found.split()) for found in re.findall(r"`[^`]+`|<kbd>.+?</kbd>", part)]
    numbers = re.findall(r"\d[\d.,]*\d|\d", part)
    return sorted(["|"] * part.count("|") + names + numbers)


@pytest.mark.parametrize("name", TWINS)
def test_what_is_in_chinese_says_the_same_and_leads_on_in_chinese(name: str) -> None:
    english, chinese = skeleton(f"{name}.md"), skeleton(f"{name}.zh.md")
    assert all(english[kind] for kind in ("headings", "links and pictures", "facts"))
    for kind, found in english.items():
        assert chinese[kind] == found, kind
    # between such a mark as 。 and a word Markdown takes a star that should close for text
    html = MarkdownIt("commonmark").enable("table").render(text_of(f"{name}.zh.md"))
    shown = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", html, flags=re.DOTALL)
    assert re.findall(r".{,20}\*.{,20}", shown) == []
    links = re.findall(r"(?<!!)\[(?!English\])[^]]*\]\(([^)#]+\.md)", text_of(f"{name}.zh.md"))
    for link in links:
        target = ((ROOT / f"{name}.zh.md").parent / link).resolve()
        if not link.endswith(".zh.md") and target not in SITE:
            assert not target.with_suffix(".zh.md").exists(), link
    file = Path(name).name
    if name != "docs/hooks" and ROOT / f"{name}.md" not in SITE:  # whose builder adds the links
        assert text_of(f"{name}.md").split("\n")[2] == f"English · [简体中文]({file}.zh.md)"
        assert text_of(f"{name}.zh.md").split("\n")[2] == f"[English]({file}.md) · 简体中文"
    italic = r"(?<!\*)\*([^*]+)\*(?!\*)"
    words, theirs = (
        [" ".join(said.split()) for said in re.findall(italic, without_code(ROOT / file))]
        for file in (f"{name}.md", f"{name}.zh.md")
    )
    assert len(words) == len(theirs)
    with speaking("zh_CN"):
        said = Counter(say(each) for each in words if say(each) != each)
    assert said - Counter(theirs) == Counter()


def test_what_is_supported_is_shown_by_tests() -> None:
    rows = re.findall(r"^\|.*\|$", text_of("docs/supported.md"), re.MULTILINE)
    rows = [row for row in rows if not row.startswith(("| What", "|--"))]
    assert len(rows) >= 20
    for row in rows:
        named = re.search(r"`([\w/]+\.py)::(\w+)` \|$", row)
        assert named, row
        text = (ROOT / "tests" / named[1]).read_text("utf-8")
        assert f"\ndef {named[2]}(" in text, row
