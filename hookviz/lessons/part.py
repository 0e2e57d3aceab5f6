"""What a live part of a lesson is: what its file may set, and what it computes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import LayerTrace
from hookviz.types import InputImage, Model, ModelInput

Fact = str | int | float
"""What the text of a step can name in braces; a number may have a format: ``{mean:.2f}``."""


class Dotted(dict[str, Fact]):
    """Facts of which some can't be known; dots stand for those."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, _name: str) -> Fact:
        return "…"


@dataclass(frozen=True, eq=False)
class Scene:
    """What all live parts of a lesson look at.

    Attributes:
        model: the model, which is shared and read-only.
        model_input: what the network gets, with its picture and crop.
        image: the image that it was made from.
        trace: what a pass over this input runs.
        cache: the session's cache, if any.
    """

    model: Model
    model_input: ModelInput
    image: InputImage
    trace: LayerTrace
    cache: ByteCache | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Option:
    """Something that a lesson's file can set.

    Attributes:
        name: as the file writes it before the colon.
        default: what it is where the file says nothing; None where it must be set.
        help: one sentence for whoever writes a lesson.
        check: gives what is wrong with a value, in words, or nothing.
    """

    name: str
    default: str | None
    help: str
    check: Callable[[str], str] = field(default=lambda _value: "")


Options = Mapping[str, str]


def _none(_scene: Scene, _options: Options) -> dict[str, Fact]:
    return {}


def _nowhere(_scene: Scene, _options: Options) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of live part; each is a file of `hookviz.lessons.parts` with ``PART`` in it.

    Attributes:
        name: as a lesson's file writes it after ``live``.
        sentence: what one sees and can do, for whoever writes a lesson.
        options: what the file can set.
        facts: what the text of the same step can name in braces, computed, never typed.
        link: the page's link of what it shows, as the parameters that differ from the lesson's:
            ``layer``, ``channel``, ``cell``, ``lens`` and the like.
    """

    name: str
    sentence: str
    options: tuple[Option, ...] = ()
    facts: Callable[[Scene, Options], Mapping[str, Fact]] = _none
    link: Callable[[Scene, Options], Mapping[str, str]] = _nowhere
