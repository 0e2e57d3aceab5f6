"""Every marked sentence is said somewhere."""

from pathlib import Path

import pytest

from scripts import languages
from scripts.marks import Graph

_SENTENCES = "KINDS = ((b'%PDF', mark('a PDF document')),)\n"


def unsaid(folder: Path, code: str) -> list[str]:
    package = folder / "package"
    package.mkdir()
    (package / "module.py").write_text(_SENTENCES + code, "utf-8")
    return Graph(package).unsaid()


def test_every_marked_sentence_is_said() -> None:
    assert Graph(languages.PACKAGE).unsaid() == []


@pytest.mark.parametrize(
    "code",
    [
        "print(KINDS)",
        "def find(): return say('It is {kind}.', kind=next(kind for _, kind in KINDS))",
        "def find():\n  words = dict(KINDS)[b'%PDF']\n  return Error(words.format(host=1))",
        "def find(): return f'{KINDS[0][1]}'",
        "def find(): return ', '.join(kind for _, kind in KINDS)",
        "def other(kind): return say(kind)\ndef find(): return [kind for _, kind in KINDS]",
    ],
)
def test_a_marked_sentence_that_nobody_says_is_found(tmp_path: Path, code: str) -> None:
    assert unsaid(tmp_path, code) == ["package.module:1 'a PDF document'"]


@pytest.mark.parametrize(
    "code",
    [
        "def find(): return say('It is {kind}.', kind=say(next(kind for _, kind in KINDS)))",
        "def find(): return partial(say, dict(KINDS)[b'%PDF'])",
        "def find(): return list(map(say, [kind for _, kind in KINDS]))",
        "def other(kind): return say(kind)\ndef find(): return [other(kind) for _, kind in KINDS]",
        "class Kind:\n  title: str\nKind(KINDS[0][1])\ndef find(kind): return say(kind.title)",
        "def choose(words, shown=say): return map(shown, words)\nchoose([KINDS[0][1]])",
    ],
)
def test_one_that_is_said_is_not(tmp_path: Path, code: str) -> None:
    assert unsaid(tmp_path, code) == []
