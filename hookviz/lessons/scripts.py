"""Read the short plain-PyTorch scripts of lessons, set the constants they offer, and run them.

A script is a file of ours in ``assets/lessons/code`` that runs by itself, too. What can be chosen
are constants at its top, each with its values in a comment: ``DEPTH = 10  # from 2 to 20`` or
``CLONE = False  # one of False, True``. A choice takes the place of the constant's value, and of
nothing else, so the code that is shown is the code that is run; no visitor's code ever is.

A script may have cells, each begun by a line ``# %% Title``, as editors know them. The one called
`SET_UP` makes ``model``, ``batch`` and ``names``, the likeliest classes: in the file those of a
small network, on the page those of the chosen network and image (`hookviz.lessons.script_scene`).

What a script's names hold at its end is what comes of it: numbers and words under lower-case names
are facts for the text, as the constants are; ``pictures`` are maps by their titles, and ``bars``
are numbers by theirs.
"""

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.errors import SettingError, UnknownNameError
from hookviz.language.saying import say
from hookviz.models.architectures import same_random_numbers
from hookviz.settings import ASSETS

FOLDER = ASSETS / "lessons" / "code"

Value = str | int | float | bool

_CONSTANT = re.compile(
    r"^(?P<name>[A-Z][A-Z_]*) = (?P<value>[^#]+?)  # (?:from (?P<low>\d+) to (?P<high>\d+)"
    r"|one of (?P<listed>.+))$",
    re.MULTILINE,
)
_CELL = re.compile(r"^# %% (?P<title>.+)\n", re.MULTILINE)
SET_UP = "Set-up"
HOOK = "The hook"
"""Title of the cell that is read first; a script's set-up is whatever stands above it."""
_PRINTS = re.compile(r'^(?P<before> *print\(f?")(?P<words>[^"\\]+)(?P<after>"\))$', re.MULTILINE)
_COMMENT = re.compile(
    r"(?P<before>(?:^|  ) *# )(?P<words>(?!%%|from \d|one of )[^#\n]+)$", re.MULTILINE
)
_FIELD = re.compile(r"\{[^}]*\}")
_RUNS = 512  # kept; every choice of every script that stands by itself


@dataclass(frozen=True, slots=True)
class Control:
    """A constant of a script that can be chosen.

    Attributes:
        name: of the constant.
        values: what it can be, in order.
        start: what it is in the file.
    """

    name: str
    values: tuple[Value, ...]
    start: Value


@dataclass(frozen=True, slots=True)
class Script:
    """A script as its file has it, or with the set-up of a chosen network in place of its own."""

    name: str
    text: str = field(repr=False)
    controls: tuple[Control, ...]

    @property
    def needs_scene(self) -> bool:
        """Whether it runs on the chosen network and image: it has a cell that makes them."""
        return any(title == SET_UP for title, _ in cells(self.text))

    def with_choices(self, choices: Mapping[str, Value]) -> str:
        """Return the script's text with the chosen values in place of its constants' own.

        Raises:
            SettingError: a constant can't be chosen, or can't be that.
        """
        controls = {control.name: control for control in self.controls}
        for name, value in choices.items():
            if name not in controls:
                raise SettingError(
                    say("{name} can't be chosen in {script}.py.", name=name, script=self.name)
                )
            if not any(_same(value, known) for known in controls[name].values):
                allowed = ", ".join(map(as_code, controls[name].values))
                raise SettingError(
                    say(
                        "{name} of {script}.py can't be {value}: it is one of {allowed}.",
                        name=name,
                        script=self.name,
                        value=as_code(value),
                        allowed=allowed,
                    )
                )

        def changed(match: re.Match[str]) -> str:
            if match["name"] not in choices:
                return match[0]
            start, end = (at - match.start() for at in match.span("value"))
            return f"{match[0][:start]}{as_code(choices[match['name']])}{match[0][end:]}"

        return _CONSTANT.sub(changed, self.text)


@dataclass(frozen=True, eq=False, slots=True)
class ScriptRun:
    """What a script printed, computed and drew.

    Attributes:
        printed: its lines.
        facts: its numbers and words by their names, and the constants by theirs in small letters.
        pictures: maps ``(H, W)`` by their titles.
        bars: numbers by the name of their series, all of one length.
    """

    printed: tuple[str, ...]
    facts: Mapping[str, str | int | float]
    pictures: Mapping[str, NDArray[np.float32]] = field(repr=False)
    bars: Mapping[str, NDArray[np.float64]] = field(repr=False)


def cells(text: str) -> tuple[tuple[str, str], ...]:
    r"""Split a script at its lines ``# %% Title`` into titles and code; the first has no title.

    >>> cells("a = 1\n# %% The hook\nb = 2\n")
    (('', 'a = 1\n'), ('The hook', 'b = 2\n'))
    """
    begin, *rest = _CELL.split(text)
    return (("", begin), *zip(rest[::2], rest[1::2], strict=True))


def script_names() -> tuple[str, ...]:
    """Return the names of all scripts."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.py")))


@cache
def read_script(name: str) -> Script:
    """Read the script of that name.

    Raises:
        UnknownNameError: there is none; the nearest names are named.
    """
    if name not in script_names():
        raise UnknownNameError("script for lessons", name, script_names())
    return script_of(name, Path(FOLDER, f"{name}.py").read_text("utf-8"))


def script_of(name: str, text: str) -> Script:
    """Return the script with that text, and with the constants that can be chosen in it."""
    return Script(name, text, tuple(_control(match) for match in _CONSTANT.finditer(text)))


def comment_words(text: str) -> tuple[str, ...]:
    """Return the comments of a script; not the titles of cells, nor the values of constants."""
    return tuple(match["words"] for match in _COMMENT.finditer(text))


def printed_words(text: str) -> tuple[str, ...]:
    """Return what the lines of a script print that has words in it, with its facts in braces."""
    found = (match["words"] for match in _PRINTS.finditer(text))
    return tuple(words for words in found if re.search("[A-Za-z]{2}", _FIELD.sub("", words)))


def in_the_language(script: Script, read: Script) -> Script:
    """Return the script with its comments and what it prints in the language that is spoken.

    Args:
        script: as it is to be run: last of all it is translated, since what puts a network into it
            goes by its words.
        read: it as its file has it. The words of a person's own network in it stay as they are.
    """
    ours = frozenset(printed_words(read.text))
    comments = frozenset(comment_words(read.text))

    def said(match: re.Match[str]) -> str:
        words = match["words"]
        words = say(words) if words in ours else words
        return f"{match['before']}{words}{match['after']}"

    def remarked(match: re.Match[str]) -> str:
        words = match["words"]
        return match["before"] + (say(words) if words in comments else words)

    return replace(script, text=_COMMENT.sub(remarked, _PRINTS.sub(said, script.text)))


def run_script(script: Script, choices: Mapping[str, Value]) -> ScriptRun:
    """Run a script with those choices once, and return what it printed, computed and drew.

    Raises:
        SettingError: as `Script.with_choices` does.
    """
    run = _run(script.name, script.with_choices(choices))
    chosen = {
        control.name.lower(): choices.get(control.name, control.start)
        for control in script.controls
    }
    return replace(run, facts=chosen | dict(run.facts))


@lru_cache(_RUNS)
def _run(name: str, text: str) -> ScriptRun:
    """Execute a script of ours; `text` differs from its file in chosen constants alone."""
    # one script at a time, since each seeds torch's only generator
    with same_random_numbers(), torch.inference_mode(mode=False), torch.enable_grad():
        return execute(name, text, {})


def execute(name: str, text: str, given: Mapping[str, object]) -> ScriptRun:
    """Execute code of ours, with what it finds under the names of `given`."""
    printed: list[str] = []

    def keep(*words: object) -> None:
        printed.extend(" ".join(map(str, words)).splitlines())

    held: dict[str, Any] = {**given, "__name__": "__main__", "print": keep}
    exec(compile(text, f"{name}.py", "exec"), held)  # noqa: S102 - a file of ours, see above
    return ScriptRun(
        tuple(printed),
        {
            key: value
            for key, value in held.items()
            if key.islower() and not key.startswith("_") and type(value) in (str, int, float)
        },
        {
            title: np.asarray(values.detach(), np.float32)
            for title, values in held.get("pictures", {}).items()
        },
        {title: np.asarray(values, np.float64) for title, values in held.get("bars", {}).items()},
    )


def as_code(value: Value) -> str:
    """Return a constant as code has it, with double quotes around words."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _control(match: re.Match[str]) -> Control:
    if match["low"] is not None:
        values: tuple[Value, ...] = tuple(range(int(match["low"]), int(match["high"]) + 1))
    else:
        values = ast.literal_eval(f"({match['listed']},)")
    return Control(match["name"], values, ast.literal_eval(match["value"]))


def _same(one: Value, other: Value) -> bool:
    """Return whether two values are the same and written alike: 1 is not True, nor 1.0."""
    return type(one) is type(other) and one == other
