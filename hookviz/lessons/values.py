"""``name: value`` lines of a lesson's file, in YAML, with the line of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from hookviz.language.saying import say
from hookviz.lessons.faults import fault

_LONGEST = 4000  # characters


@dataclass(frozen=True, slots=True)
class Value:
    """What stands behind a colon: the text as written, and its line in the file, from 1."""

    text: str
    line: int


def read_values(text: str, file: Path, line: int) -> Mapping[str, Value]:
    """The values by name; `text` begins at `line` of the file.

    Only the notation is read and nothing is made of it: so no tag of YAML's can make an object, and
    no alias a large one.

    Raises:
        LessonError: it is not such lines.
    """
    if len(text) > _LONGEST:
        raise fault(file, line, say("These lines are longer than a lesson needs."))
    try:
        top = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        wrong = getattr(error, "problem", None) or say("it is nested too deep")
        what = say("This can't be read as YAML: {reason}.", reason=wrong)
        raise fault(file, line + (mark.line if mark else 0), what) from error
    if top is None:
        return {}
    if not isinstance(top, MappingNode):
        what = say("Lines of the form name: value belong here.")
        raise fault(file, line + top.start_mark.line, what)
    found: dict[str, Value] = {}
    for key, value in top.value:
        at = line + key.start_mark.line
        name = _scalar(key, file, at)
        if name in found:
            raise fault(file, at, say("{name} stands here twice.", name=name))
        found[name] = Value(_scalar(value, file, at), at)
    return found


def _scalar(node: Node, file: Path, line: int) -> str:
    """The text of a node.

    Raises:
        LessonError: it is a list, a mapping, or of a type of somebody's own.
    """
    if isinstance(node, ScalarNode) and node.tag.startswith("tag:yaml.org,2002:"):
        kind = node.tag.rpartition(":")[2]
        if kind in ("str", "int", "float", "bool", "null", "timestamp"):
            return str(node.value)
    what = say("Only plain words and numbers can stand behind a name here.")
    raise fault(file, line, what)
