"""Say what a network answered for one image of a pass, and who the model of a capture is."""

from collections.abc import Callable
from dataclasses import replace
from weakref import ref

from torch import nn

from hookviz.errors import ModelError
from hookviz.language.saying import say
from hookviz.outputs.answer import Answer, Reading, Scores
from hookviz.outputs.declaration import EMBEDDING
from hookviz.types import Model


def answer_for(model: Model, scores: Scores | None, image: int = 0) -> Answer | None:
    """Return what the network answered for one of the images of a pass."""
    if scores is None:
        return None
    areas = None if scores.areas is None else scores.areas[image].clone()
    boxes = None if scores.boxes is None else scores.boxes[image].clone()
    reading = Reading(scores.kind, model.output.unit)
    return Answer(scores.values[image].clone(), reading, areas, boxes)


def check_labels(model: Model, scores: Scores | None) -> None:
    """Refuse labels of another number than the classes that a network puts out."""
    labels = len(model.categories)
    if model.fixed_digest or not labels or scores is None or labels == scores.values.shape[1]:
        return
    if scores.kind == EMBEDDING:  # of a backbone whose configuration has a classifier's labels
        return
    raise ModelError(
        say(
            "categories has {label_count:,} labels, and {model} puts out {class_count:,} "
            "classes; give one label per class, in the order of its outputs.",
            label_count=labels,
            model=model.title,
            class_count=scores.values.shape[1],
        )
    )


def maker_of(model: Model) -> Callable[[], Model | None]:
    """Return a function that returns the model while somebody keeps it, or its own network."""
    known, network = ref(model), ref(model.network)
    if model.fixed_digest or model.replaced:
        return known
    blank = replace(model, network=nn.Identity())

    def made_by() -> Model | None:
        kept = network()
        return known() or (None if kept is None else replace(blank, network=kept))

    return made_by
