"""The languages: nothing missing, nothing too much, and every fact where a sentence names it."""

import ast
import builtins
import os
import subprocess
import sys
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Message

from hookviz.language import catalogs
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from scripts import languages
from tests.language.pseudo import catalog_of

_MECHANICAL = {*dir(builtins), *dir(str), "self", "given", "found", "told", "wrong"}
_MECHANICAL -= {"count", "format", "index", "max", "min", "sum", "title"}  # nouns, too


def strings(message: Message) -> tuple[str, ...]:
    string = message.string
    return (string,) if isinstance(string, str) else tuple(string or ())


def facts(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", sorted(catalogs.files()))
def test_a_file_has_all_that_is_said_with_its_facts_and_nothing_else(language: str) -> None:
    """`python -m scripts.languages` brings it up to date; what is empty then is to be filled in.

    Names, units and signs are the same everywhere; a sentence of several words is not.
    """
    catalog = catalog_of(language)
    assert catalogs.files()[language].read_bytes() == languages.written(catalog)
    messages = [message for message in catalog if message.id]
    assert [message.id for message in messages if not all(strings(message))] == []
    same = [message.id for message in messages if message.string == message.id]
    assert [text for text in same if isinstance(text, str) and len(text.split()) > 3] == []
    for message in messages:
        if "python-brace-format" in message.flags:
            sentences = (message.id,) if isinstance(message.id, str) else tuple(message.id)
            for translation in strings(message):
                assert facts(translation) == set().union(*map(facts, sentences)), message.id


def test_nothing_is_said_inside_an_f_string_or_to_the_log() -> None:
    """There it is not found on Python 3.11, and so would never be translated; here it would be."""
    for file in languages.PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.JoinedStr) and not called.startswith("logger."):
                continue
            said = [
                ast.unparse(part)
                for part in ast.walk(node)
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
                if part.func.id in {"say", "mark", "say_count"}
                if called or isinstance(part.args[0], ast.Constant)
            ]
            assert said == [], file.name


def test_a_placeholder_is_called_by_what_it_holds() -> None:
    """Translators read it: no number to tell two of one name apart, no name out of the code."""
    names = {
        name
        for message in catalog_of("zh_CN")
        if "python-brace-format" in message.flags
        if any(name.endswith(".py") for name, _ in message.locations)
        # a lesson's script is shown as it is, with names of its own
        if not all(name.startswith("assets/lessons/code/") for name, _ in message.locations)
        for text in ((message.id,) if isinstance(message.id, str) else message.id)
        for name in facts(text)
    }
    numbered = {name for name in names if name.rstrip("0123456789").endswith("_")}
    assert (numbered, names & _MECHANICAL) == (set(), set())


def test_another_language_is_one_file(tmp_path: Path) -> None:
    """In a process of its own, since the languages are looked up once."""
    (tmp_path / "eo.po").write_text(
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        '\nmsgid "{count:,} channels of {layer}"\nmsgstr "{layer} havas {count:,} kanalojn"\n',
        "utf-8",
    )
    code = (
        "from hookviz.language.speaking import speaking\n"
        "from hookviz.language.saying import say\n"
        "with speaking('eo'):\n"
        "    print(say('{count:,} channels of {layer}', count=1234, layer='conv1'), say('Nenio'))\n"
    )
    environment = os.environ | {catalogs.SETTING: str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.replace("\u202f", " ").replace("\xa0", " ") == (
        "conv1 havas 1 234 kanalojn Nenio\n"
    )


def test_what_is_not_translated_stays_english() -> None:
    with speaking("zh_CN"):
        assert say("Nobody ever said {this}.", this="that") == "Nobody ever said that."
