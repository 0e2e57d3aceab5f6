"""Declare the choice of a layer that attends, which only a pass that is watched can tell."""

from dataclasses import dataclass
from typing import Any

from hookviz.errors import UnknownLayerError
from hookviz.explaining.attention.weights import attending_layers, no_attention_error
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.parameters import LensSubject, Parameter


@dataclass(frozen=True, kw_only=True, slots=True)
class AttendingLayer(Parameter):
    """Choice of a layer that computes attention, by its name; the last one by default."""

    name: str = "layer"
    label: str = mark("Layer")

    def choices(self, subject: LensSubject) -> tuple[str, ...]:
        """Return the layers that attend, in order of execution; none where nothing does.

        Raises:
            ModelError: the network can't take the input.
        """
        return attending_layers(subject.model, tuple(subject.shape))

    def resolve(self, value: Any, subject: LensSubject) -> str:
        """Return the layer's name.

        Raises:
            ModelError: nothing in the network attends; it says which networks do.
            UnknownLayerError: no layer of that name attends.
        """
        names = self.choices(subject)
        if not names:
            raise no_attention_error(subject.model)
        if value is None:
            return names[-1]
        if value not in names:
            kind = say("layer that attends")
            model = subject.model.title
            raise UnknownLayerError(
                say("{kind} in {model}", kind=kind, model=model), str(value), names
            )
        return str(value)
