"""Run a short plain-PyTorch script with chosen constants, and show what it prints and draws."""

import json
from collections.abc import Mapping

from hookviz.errors import UnknownNameError
from hookviz.language.saying import mark
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.script_scene import on_scene, run_on_scene
from hookviz.lessons.scripts import (
    Script,
    ScriptRun,
    Value,
    in_the_language,
    read_script,
    run_script,
)

_LAYER = "LAYER"  # the constant whose channels another one counts


def _fault(name: str) -> str:
    try:
        read_script(name)
    except UnknownNameError as error:
        return str(error)
    return ""


CHOICES, EDITED = "choices", "edited"
"""Among the options, as JSON, the constants that were chosen, and the facts of edited lines."""


def chosen_script(
    name: str, scene: LessonScene, choices: Mapping[str, Value]
) -> tuple[Script, dict[str, Value]]:
    """Return the script for the scene, and of what was chosen that which it offers there.

    Choices come from links, which may have been made for another network.
    """
    read = read_script(name)
    script = in_the_language(on_scene(read, scene, choices.get(_LAYER)), read)
    offered = {control.name: control.values for control in script.controls}
    kept = {key: value for key, value in choices.items() if value in offered.get(key, ())}
    return script, kept


def run(script: Script, scene: LessonScene, choices: Mapping[str, Value]) -> ScriptRun:
    """Run the script with those choices, on the scene where it needs one."""
    if read_script(script.name).needs_scene:
        return run_on_scene(script, scene, choices)
    return run_script(script, choices)


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    """Return what the script's own names hold at its end: as it is, as was chosen, or edited."""
    choices = json.loads(options.get(CHOICES, "{}"))
    script, kept = chosen_script(options["script"], scene, choices)
    return {**run(script, scene, kept).facts, **json.loads(options.get(EDITED, "{}"))}


PART = Part(
    name="hook-code",
    sentence=mark(
        "A short plain-PyTorch script, its lines with the hook first and its set-up folded away; "
        "its constants can be chosen and, on one's own machine, its lines edited. Its numbers and "
        "words are facts under the names that they have in the script."
    ),
    options=(
        Option(
            "script",
            None,
            mark("A file of assets/lessons/code, without its ending, such as see."),
            _fault,
        ),
    ),
    facts=_facts,
)
