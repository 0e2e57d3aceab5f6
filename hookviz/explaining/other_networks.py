"""Ask the networks in the box about a picture that was changed to fool another one.

Whether a change goes over to other networks is theirs to say; each is then fooled by its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from hookviz.capturing.inputs import prepare
from hookviz.drawing.pictures import encode_png
from hookviz.errors import HookVizError
from hookviz.explaining.smallest_change import PictureChange, class_scores_of, class_to_make
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.models.bundled import BUNDLED
from hookviz.models.loading import load_model
from hookviz.types import Model

Search = Callable[..., PictureChange]
"""`smallest_change`, with the steps and the largest bound that are wanted."""


@dataclass(frozen=True, eq=False, slots=True)
class OtherAnswer:
    """What another network says, and what flips its own answer.

    Attributes:
        model: the other network.
        before: its class scores for the picture before, ahead of the softmax, ``(classes,)``.
        after: those for the picture that was changed for the first network.
        own: the smallest change that was found for this one.
    """

    model: Model = field(repr=False)
    before: Tensor = field(repr=False)
    after: Tensor = field(repr=False)
    own: PictureChange


def other_names(model: Model) -> tuple[str, ...]:
    """Return the names of the networks in the box without that of `model`."""
    return tuple(name for name in BUNDLED if name != model.name)


def other_answer(
    name: str, change: PictureChange, search: Search, reporter: ProgressReporter
) -> OtherAnswer | None:
    """Return what the network called `name` says of both pictures, and its own smallest change.

    It gets both pictures as files, which it scales and crops as it does any other. None where this
    machine has no room for the network.
    """
    try:
        model = load_model(name)
    except HookVizError:
        return None
    before, after = (prepare(model, encode_png(each)) for each in (change.original, change.picture))
    scores = class_scores_of(model, before)
    own = search(model, before, class_to_make(model, scores), progress=reporter.within)
    return OtherAnswer(model, scores, class_scores_of(model, after), own)
