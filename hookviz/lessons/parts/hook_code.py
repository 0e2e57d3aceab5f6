"""Run a short plain-PyTorch script with chosen constants, and show what it prints and draws."""

import json
from collections.abc import Mapping

from hookviz.errors import UnknownNameError
from hookviz.language.saying import mark
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.scripts import read_script, run_script


def _fault(name: str) -> str:
    try:
        read_script(name)
    except UnknownNameError as error:
        return str(error)
    return ""


CHOICES = "choices"
"""Among the options the constants that a learner chose, as JSON; a lesson's file has none."""


def _facts(_scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    """Return what the script's own names hold at its end, as its file is or as was chosen."""
    choices = json.loads(options.get(CHOICES, "{}"))
    return run_script(read_script(options["script"]), choices).facts


PART = Part(
    name="hook-code",
    sentence=mark(
        "A short plain-PyTorch script with what it prints and draws; its constants can be chosen. "
        "Its numbers and words are facts under the names that they have in the script."
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
