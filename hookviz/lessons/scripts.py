"""Read the short plain-PyTorch scripts of lessons, set the constants they offer, and run them.

A script is a file of ours in ``assets/lessons/code`` that runs by itself, too. What can be chosen
are constants at its top, each with its values in a comment: ``DEPTH = 10  # from 2 to 20`` or
``CLONE = False  # one of False, True``. A choice takes the place of the constant's value, and of
nothing else, so the code that is shown is the code that is run; no visitor's code ever is.

A script may have cells, each begun by a line ``# %% Title``, as editors know them. The one called
`SET_UP` makes ``model``, ``batch`` and ``names``, the likeliest classes: in the file those of a
small network, on the page those of the chosen network and image (`on_scene`). The set-up that is
shown is written by `hookviz.codegen`, so that the script runs without HookViz as well; on the page
it is not run.

What a script's names hold at its end is what comes of it: numbers and words under lower-case names
are facts for the text, as the constants are; ``pictures`` are maps by their titles, and ``bars``
are numbers by theirs.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hookviz.capturing.engine import capture
from hookviz.codegen.facts import NetworkFacts, network_facts
from hookviz.codegen.script_text import assemble
from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons.layers import PLACES, layer_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import own_scores
from hookviz.models.architectures import same_random_numbers
from hookviz.settings import ASSETS
from hookviz.types import LayerInfo

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
            if not any(_is_same(value, known) for known in controls[name].values):
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


def _is_same(one: Value, other: Value) -> bool:
    """Return whether two values are the same and written alike: 1 is not True, nor 1.0."""
    return type(one) is type(other) and one == other


_LAYER = re.compile(r'^LAYER = ".*"  # (?P<which>a|the first) conv layer$', re.MULTILINE)
_OF_LAYERS = re.compile(r'^(LAYER = "[^"]*")  # one of .*$', re.MULTILINE)
_CHANNEL = re.compile(r"^CHANNEL = .*  # a channel of it$", re.MULTILINE)
_NAMED = 3  # classes that a script knows by name
_IMAGE_AXES = 3  # of a layer's maps: channels, rows and columns
_AT_HAND = "# torch. nn."  # what has a written script import both
_BYTES = 300_000  # about what comes of a run: a few maps and lines


def on_scene(script: Script, scene: LessonScene, layer: Value | None = None) -> Script:
    """Return the script for the scene's network and image: its set-up, layers and channels.

    Args:
        script: as its file has it; one without a set-up is returned as it is.
        scene: the chosen network and image.
        layer: the layer whose channels can be chosen; the one to start with without it.

    Raises:
        HookVizError: the network has no conv layer with maps, or no scores where it needs them.
    """
    if not script.needs_scene:
        return script
    layers = _layers(scene)
    chosen = next((each for each in layers if each.name == layer), layers[0])
    key = ("script", current(), script.name, chosen.name)
    text = scene.cached(key, lambda: _text(script, scene, layers, chosen), 10_000)
    return script_of(script.name, text)


def run_on_scene(script: Script, scene: LessonScene, choices: Mapping[str, Value]) -> ScriptRun:
    """Run what follows the set-up on the scene's network and image, once for the same choices.

    Raises:
        SettingError: as `Script.with_choices` does.
        HookVizError: the script can't run on this network.
    """
    text = after_set_up(script.with_choices(choices))
    run = scene.cached(
        ("script run", current(), script.name, text),
        lambda: _run_lines(script.name, text, scene),
        _BYTES,
    )
    chosen = {control.name.lower(): control.start for control in script.controls}
    lowered = {name.lower(): value for name, value in choices.items()}
    return replace(run, facts=chosen | lowered | dict(run.facts))


def after_set_up(text: str) -> str:
    """Return the lines behind the set-up, close together: what a person reads first, and edits."""
    found = cells(text)
    at = [title for title, _ in found].index(HOOK)
    (_, first), *rest = found[at:]
    lines = "".join([first, *(f"# %% {title}\n{code}" for title, code in rest)])
    lines = re.sub("\n{3,}", "\n\n", lines)
    return _OF_LAYERS.sub(r"\1  # a conv layer", lines)


def set_up_of(text: str) -> str:
    """Return the set-up's lines, with whatever stands above them."""
    before, *_ = text.partition(f"# %% {HOOK}\n")
    return "".join(code for _, code in cells(before)).strip() + "\n"


def can_run_apart(scene: LessonScene) -> bool:
    """Return whether the written set-up makes the network: of a person's own only they have it."""
    facts = _facts(scene)
    return facts.origin != "own" and (facts.preprocess is not None or bool(facts.library_calls))


def weights_of(scene: LessonScene) -> str:
    """Return the name of the file of weights that the written set-up reads; none without one."""
    found = re.search(r"^WEIGHTS = (['\"])(.+)\1", _head(scene, ()), re.MULTILINE)
    return found[2] if found else ""


def _facts(scene: LessonScene) -> NetworkFacts:
    return NetworkFacts(
        **network_facts(scene.model, scene.image.name, size=scene.size, whole=scene.whole)
    )


def _head(scene: LessonScene, parts: Sequence[str]) -> str:
    """Write the set-up, with torch and nn at hand for whoever edits the lines behind it."""
    text = assemble(f"# %% {SET_UP}", _facts(scene), [*parts, _AT_HAND])
    return text.removesuffix(f"{_AT_HAND}\n").rstrip() + "\n"


def _layers(scene: LessonScene) -> list[LayerInfo]:
    """Return the conv layers at the places that lessons name, each once, in their order."""
    places = {layer.name: layer for layer in (layer_of(scene, place) for place in PLACES)}
    modules = dict(scene.model.network.named_modules())
    found = [
        layer
        for name, layer in places.items()
        if name in modules and len(layer.output_shape) == _IMAGE_AXES
    ]
    if not found:
        raise HookVizError(
            say("{model} has no conv layer, which this part needs.", model=scene.model.title)
        )
    return found


def _text(script: Script, scene: LessonScene, layers: list[LayerInfo], chosen: LayerInfo) -> str:
    """Write the whole script, which runs by itself."""
    title, *_ = script.text.splitlines()
    behind = [(name, code.strip()) for name, code in cells(script.text) if name not in ("", SET_UP)]
    parts = [_names(scene)] if any("names" in code for _, code in behind) else []
    parts += [f"# %% {name}\n{code}" for name, code in behind]
    text = f"{title}\n\n{_head(scene, parts)}"
    text = _CHANNEL.sub(lambda _: _channel_line(scene, chosen), text)
    return _LAYER.sub(lambda match: _layer_line(match["which"], layers, chosen), text)


def _names(scene: LessonScene) -> str:
    scores = own_scores(scene)
    names = {target: scores.name(target) for target in scores.first(_NAMED)}
    listed = ",\n".join(f"    {target}: {as_code(name)}" for target, name in names.items())
    return f"names = {{  # the likeliest classes\n{listed},\n}}"


def _layer_line(which: str, layers: list[LayerInfo], chosen: LayerInfo) -> str:
    if which != "a":
        return f"LAYER = {as_code(layers[0].name)}  # the first conv layer"
    listed = ", ".join(as_code(layer.name) for layer in layers)
    return f"LAYER = {as_code(chosen.name)}  # one of {listed}"


def _channel_line(scene: LessonScene, layer: LayerInfo) -> str:
    """Write the constant, which begins at the channel with the highest value."""
    maps = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name].values
    strongest = int(maps.flatten(1).amax(1).argmax())
    return f"CHANNEL = {strongest}  # from 0 to {len(maps) - 1}"


def _run_lines(name: str, text: str, scene: LessonScene) -> ScriptRun:
    """Execute the lines on the scene's network, and take off the hooks that they leave."""
    given: dict[str, object] = {"torch": torch, "nn": torch.nn}
    with private_replica(scene.model) as network, _hooks_put_back(network):
        given |= {"model": network, "batch": scene.model_input.tensor.clone()}
        if re.search(r"\bnames\b", text):
            scores = own_scores(scene)
            given["names"] = {target: scores.name(target) for target in scores.first(_NAMED)}
        try:
            return execute(name, text, given)
        except Exception as error:  # a network may be made in ways that no script foresees
            reason = shorten(str(error).strip().partition("\n")[0], 200) or type(error).__name__
            raise HookVizError(
                say(
                    "{script}.py can't run on {model}: {reason}",
                    script=name,
                    model=scene.model.title,
                    reason=reason,
                )
            ) from error


@contextmanager
def _hooks_put_back(network: nn.Module) -> Iterator[None]:
    tables = [
        (table, dict(table))
        for module in network.modules()
        for name, table in vars(module).items()
        if "hooks" in name and isinstance(table, dict)
    ]
    try:
        yield
    finally:
        for table, before in tables:
            table.clear()
            table.update(before)
