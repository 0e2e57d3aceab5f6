"""List what is read behind the wall: functions by name, and the error of their kind of file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from mmap import mmap
from typing import TYPE_CHECKING, Any

from hookviz.errors import HookVizError, ImageError, WeightsError

if TYPE_CHECKING:  # on Linux alone
    from hookviz.reader.answer_file import AnswerWriter

Read = Callable[["mmap | bytes", Mapping[str, Any], "AnswerWriter"], Mapping[str, Any]]
"""Takes the file, what it was asked for and room for arrays, and returns facts fit for JSON."""


@dataclass(frozen=True, slots=True)
class Job:
    """Way to read a kind of file.

    Attributes:
        target: ``package.module:function``, of type `Read`. The module may have a function
            ``preload``, run once before the first file: nothing can be imported behind the wall.
        error: what is raised for a file that ends its reader.
    """

    target: str
    error: type[HookVizError]


JOBS: dict[str, Job] = {
    "nothing": Job("hookviz.reader.jobs:read_nothing", HookVizError),
    "image": Job("hookviz.images.confined:read_image", ImageError),
    "frames": Job("hookviz.images.confined:read_frames", ImageError),
    "pickles": Job("hookviz.models.checkpoints.guards:follow_pickles", WeightsError),
}


def load(target: str) -> Read:
    """Import the function of a job, and let its module load what it will need."""
    module_name, _, name = target.partition(":")
    module = import_module(module_name)
    getattr(module, "preload", lambda: None)()
    read: Read = getattr(module, name)
    return read


def read_nothing(
    _data: "mmap | bytes", _options: Mapping[str, Any], _answer: "AnswerWriter"
) -> Mapping[str, Any]:
    """Answer, which shows that a process can be confined here."""
    return {}
