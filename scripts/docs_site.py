"""Build the documentation as a site into out/site, from the Markdown files of the repository.

A broken link, a page that nothing leads to, and a name that the reference lacks are errors::

    python -m scripts.docs_site
    python -m scripts.docs_site --repository https://github.com/OWNER/NAME

With a repository, what the pages say of files of the code leads there.
The front page has the explorer in it, as `hookviz page` saves it; an article has it in two frames.
"""

import argparse
import logging
import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import hookviz
from hookviz.images.samples import samples
from scripts.article import write_article

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "out" / "site-source"
MADE = ("explorer.html", "article/index.html", "api.md")  # of no file of the repository
_RENAMED = {
    "docs/site/index.md": "index.md",
    "docs/site/index.zh.md": "index.zh.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
_FRONT = {"README.md": "index.md", "README.zh.md": "index.md"}
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"(^````.*?^````|^```.*?^```)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SWITCH = re.compile(r"^(?:English · \[简体中文\]|\[English\])\(.*\n\n", re.MULTILINE)


def main() -> None:
    """Put the pages together and build the site."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", default=os.environ.get("HOOKVIZ_REPOSITORY", ""))
    repository: str = parser.parse_args().repository
    assemble(SOURCE, repository)
    explorer_page(SOURCE / "explorer.html")
    write_article(SOURCE / "article")
    logging.basicConfig(format="%(levelname)s %(message)s")  # what is wrong, and nothing else
    build = import_module("mkdocs.commands.build").build
    build(import_module("mkdocs.config").load_config(str(ROOT / "mkdocs.yml"), strict=True))


def assemble(folder: Path, repository: str = "") -> None:
    """Write every page and picture of the site into `folder`, with links that hold there."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = _pages()
    for file, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            text = _SWITCH.sub("", _named(file.read_text("utf-8"), file))  # the site has its own
            target.write_text(_linked(text, file, place, pages, repository), "utf-8")
        else:
            shutil.copyfile(file, target)
    (folder / "api.md").write_text(_reference(), "utf-8")


def explorer_page(file: Path) -> None:
    """Save the explorer on a sample, as the front page shows it."""
    model = hookviz.load_model("squeezenet")
    sample = samples()[0]
    layers = [layer.name for layer in hookviz.list_layers(model)][:5]
    capture = hookviz.capture(model, sample.path, layers=layers)
    hookviz.save_page(capture, file, image=sample.path)


def _pages() -> dict[Path, Path]:
    """Return where each file of the repository lies in the site."""
    pages = {ROOT / name: Path(place) for name, place in _RENAMED.items()}
    for file in sorted((ROOT / "docs").rglob("*")):
        place = file.relative_to(ROOT / "docs")
        if file.is_file() and place.parts[0] != "site":
            pages[file] = place
    for file in sorted((ROOT / "docs" / "site").glob("tutorials/*.md")):
        pages[file] = file.relative_to(ROOT / "docs" / "site")
    return pages


def _anchors(file: Path) -> list[str]:
    """Return the anchors of a page's headings, in their order."""
    prose = _FENCED.sub("", file.read_text("utf-8"))
    return [
        re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        for words in _HEADING.findall(prose)
    ]


def _twin(file: Path) -> Path:
    """Return the English page of one in Chinese; any other page is its own."""
    return file.with_name(file.name.replace(".zh.md", ".md"))


def _named(text: str, file: Path) -> str:
    """Return a page whose headings have the English ones' anchors.

    So a link to a part of a page holds in both languages, whichever of the two there is.
    """
    if _twin(file) == file or not _twin(file).exists():
        return text
    anchors = iter(_anchors(_twin(file)))
    parts = _FENCED.split(text)
    return "".join(
        part
        if part.startswith("```")
        else _HEADING.sub(lambda found: f"{found[0]} {{#{next(anchors)}}}", part)
        for part in parts
    )


def _linked(text: str, file: Path, place: Path, pages: dict[Path, Path], repository: str) -> str:
    """Return a page with each link to a file led to where that lies in the site."""
    known = pages | {ROOT / name: Path(front) for name, front in _FRONT.items()}

    def lead(found: re.Match[str]) -> str:
        sign, words, link = found.groups()
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:|\?", link):
            return found[0]
        if path in MADE:
            return found[0]
        target = (file.parent / path).resolve() if path else file
        if anchor and target != _twin(target):
            anchor = _anchors(_twin(target))[_anchors(target).index(anchor)]
        if not path:
            return f"{sign}[{words}](#{anchor})"
        if target in known:
            # The site leads to a page in the language that is read.
            there = known[target].as_posix().replace(".zh.md", ".md")
            away = os.path.relpath(there, place.parent)
            is_front = target in {ROOT / name for name in _FRONT}
            return f"{sign}[{words}]({away}{f'#{anchor}' if anchor and not is_front else ''})"
        if not target.exists():
            raise FileNotFoundError(
                f"{file.relative_to(ROOT)} links to {link}, which is not there."
            )
        if sign or not repository:
            return words
        return f"[{words}]({repository}/blob/main/{target.relative_to(ROOT).as_posix()})"

    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(lead, part) for part in parts)


def _reference() -> str:
    """Return the page of all public names, each by the module that defines it."""
    lines = ["# Reference", "", "All of it is in `hookviz`: `hookviz.capture`, and so on.", ""]
    names = sorted(set(hookviz.__all__) - {"__version__"}, key=str.casefold)
    for name in names:
        lines += [f"::: hookviz.{name}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
