"""Count words that decode nothing, in names and in prose, room by room: `make words`.

Names are those that `hookviz/` defines: modules, classes, functions, parameters and variables. A
word counts where it stands whole between underscores or capitals. Prose is docstrings, comments and
the documents of `docs/`. `scripts/words.json` holds the counts, which may fall and not rise:

    .venv/bin/python -m scripts.words           # print the table, keep lower counts
    .venv/bin/python -m scripts.words --check   # fail where a count rose
    .venv/bin/python -m scripts.words --list explaining
"""

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scripts.servers import ROOT

KEPT = Path(__file__).with_name("words.json")
_NAMES = frozenset(
    (
        *("looked", "drawn", "held", "handed", "pulled", "told", "said", "asked", "given", "taken"),
        *("kept", "shown", "seen", "found", "made", "begun", "settled", "proven", "anew"),
        *("nobody", "somebody", "elsewhere", "otherwise", "alike", "thing", "way", "place"),
        *("turn", "tell", "say"),
    )
)
_PHRASES = (
    *("what is", "of which", "so many", "as it is", "no such", "one's own", "in turn"),
    *("is none of", "as if", "of what", "than that", "whatever it"),
)
_PROSE = re.compile(r"\b(?:" + "|".join(map(re.escape, _PHRASES)) + r")\b", re.IGNORECASE)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words_in_name(name: str) -> list[str]:
    """Return the listed words that stand whole in a name.

    >>> words_in_name("_is_looked_at"), words_in_name("PinnedPlace"), words_in_name("placement")
    (['looked'], ['place'], [])
    """
    return [part for part in map(str.lower, _PARTS.findall(name)) if part in _NAMES]


def phrases_in(text: str) -> list[str]:
    """Return the listed phrases in a text, across line ends."""
    return [found.lower() for found in _PROSE.findall(" ".join(text.split()))]


def names_defined(tree: ast.Module) -> Iterator[str]:
    """Yield each name that a module defines, once for each place where it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def prose_of(tree: ast.Module, source: str) -> Iterator[str]:
    """Yield the docstrings and the comments of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def found_in(file: Path) -> list[str]:
    """Return every listed word and phrase in a module or a document."""
    source = file.read_text("utf-8")
    if file.suffix == ".md":
        return phrases_in(source)
    tree = ast.parse(source)
    names = [file.stem, *names_defined(tree)]
    return [
        *(word for name in names for word in words_in_name(name)),
        *(phrase for text in prose_of(tree, source) for phrase in phrases_in(text)),
    ]


def room_of(file: Path) -> str:
    """Return the package below `hookviz` that a file is of, or ``docs``."""
    parts = file.relative_to(ROOT).parts
    return parts[0] if parts[0] == "docs" or len(parts) == 2 else parts[1]


def counted() -> dict[str, Counter[str]]:
    """Count the listed words and phrases of every room."""
    rooms: dict[str, Counter[str]] = {}
    documents = [file for file in (ROOT / "docs").glob("*.md") if ".zh" not in file.suffixes]
    for file in (*(ROOT / "hookviz").rglob("*.py"), *documents):
        rooms.setdefault(room_of(file), Counter()).update(found_in(file))
    return dict(sorted(rooms.items()))


def risen(now: dict[str, int], kept: dict[str, int]) -> list[str]:
    """Say of each room in which there are more than there were how many."""
    return [
        f"{room}: {count} listed words, {kept.get(room, 0)} before"
        for room, count in now.items()
        if count > kept.get(room, 0)
    ]


def main() -> None:
    """Print the counts, or compare them with those that are kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail where a count rose")
    parser.add_argument("--list", metavar="ROOM", help="list the words of a room")
    options = parser.parse_args()
    rooms = counted()
    if options.list:
        for word, count in rooms[options.list].most_common():
            print(f"{count:5d}  {word}")
        return
    now = {room: words.total() for room, words in rooms.items()}
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else now
    worse = risen(now, kept)
    if options.check:
        sys.exit("\n".join((*worse, "Listed in scripts/words.py: name the noun.")) if worse else 0)
    for room, count in now.items():
        print(f"{count:6d}  {room}")
    print(f"{sum(now.values()):6d}  in all, {sum(kept.values())} before", *worse, sep="\n")
    lower = {room: min(count, kept.get(room, count)) for room, count in now.items()}
    KEPT.write_text(json.dumps(lower, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
