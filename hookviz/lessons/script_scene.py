"""Put the chosen network and image in place of a script's own, and run it on them.

The set-up that is shown is written by `hookviz.codegen`, so that the script runs without HookViz as
well. Here it is not run: ``model`` and ``batch`` are the very ones that the page has.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import nn

from hookviz.capturing.engine import capture
from hookviz.codegen.facts import NetworkFacts, network_facts
from hookviz.codegen.script_head import assembled
from hookviz.errors import HookVizError, shorten
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons.layers import PLACES, layer_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import own_scores
from hookviz.lessons.scripts import (
    HOOK,
    SET_UP,
    Script,
    ScriptRun,
    Value,
    as_code,
    cells,
    execute,
    script_of,
)
from hookviz.types import LayerInfo

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
        ("script run", current(), script.name, text), lambda: _run(script.name, text, scene), _BYTES
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
    text = assembled(f"# %% {SET_UP}", _facts(scene), [*parts, _AT_HAND])
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


def _run(name: str, text: str, scene: LessonScene) -> ScriptRun:
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
