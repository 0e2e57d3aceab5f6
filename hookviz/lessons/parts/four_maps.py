"""Show maps with letters, each made by a kernel of its own, to be told apart."""

from collections.abc import Mapping

from hookviz.language.saying import say
from hookviz.lessons.kernels import PRESETS, TITLES, Kernel, same_size_map
from hookviz.lessons.maps import Map
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import grey_of

LETTERS = "ABCDEF"
_SIDE = 128  # cells of each map, at most


def lettered(options: Options) -> Mapping[str, str]:
    """Return the kernels' names by the letters of their maps, in the order that the lesson says."""
    return dict(zip(LETTERS, _names(options["kernels"]), strict=False))


def kernel_map(scene: LessonScene, kernel: Kernel) -> Map:
    """Return the map that a kernel makes of the image in grey."""
    return same_size_map(kernel, grey_of(scene, _SIDE))


def _facts(_scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    letters = lettered(options)
    facts: dict[str, Fact] = {"maps": len(letters)}
    for letter, name in letters.items():
        facts[f"letter_{name}"] = letter
        facts[f"kernel_{letter}"] = say(TITLES[name])
    return facts


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _check_kernels(value: str) -> str:
    names = _names(value)
    if not 2 <= len(names) <= len(LETTERS) or len({*names}) < len(names):
        return say("From two to six different kernels belong here, with commas between them.")
    return next(filter(None, map(choice(PRESETS), names)), "")


PART = Part(
    name="four-maps",
    sentence="Maps of the photograph with letters, each made by a kernel of its own, to be told "
    "apart.",
    options=(
        Option(
            "kernels",
            "copy, vertical, blur, horizontal",
            f"Of each map in turn, of {', '.join(PRESETS)}.",
            _check_kernels,
        ),
        Option(
            "named", "no", "Whether each map's kernel is shown: yes or no.", choice(("yes", "no"))
        ),
    ),
    facts=_facts,
)
