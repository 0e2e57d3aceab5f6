"""Explain why a state dict does not fit its architecture, and name one that it fits better."""

import re
from collections.abc import Mapping

from torch import Tensor

from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import joined, say, sentences
from hookviz.models import catalog
from hookviz.models.architectures import is_borrowed, spec_classes
from hookviz.models.state_dict_keys import Faults, match
from hookviz.types import ModelSpec

_NEAREST = 8  # architectures of about the same size that such a state dict is matched to
_ALIKE = 0.9  # share of an architecture's names and shapes that makes it worth a mention


class StateDictMismatchError(WeightsError):
    """Error for a state dict that is not one of the architecture that it was meant for.

    Attributes:
        missing: keys that the architecture has and the state dict lacks.
        unexpected: keys that the architecture does not have.
        misshapen: keys of another shape or type, each with both.
        fits: catalog name of the architecture that fits it wholly; None where none is known.
    """

    def __init__(
        self, source: str, title: str, faults: Faults, likely: str = "", fits: str | None = None
    ) -> None:
        self.missing = faults.missing
        self.unexpected = faults.unexpected
        self.misshapen = faults.misshapen
        self.fits = fits
        counts = [
            _first(self.missing, say("is missing"), say("are missing")),
            _first(
                self.unexpected,
                say("is not in the architecture"),
                say("are not in the architecture"),
            ),
            _first(self.misshapen, say("has another shape"), say("have another shape")),
        ]
        text = say(
            "{source} does not fit {title}: {differences}.",
            source=source,
            title=title,
            differences="; ".join(filter(None, counts)),
        )
        super().__init__(sentences(text, likely))


def state_dict_mismatch(
    spec: ModelSpec, state_dict: Mapping[str, Tensor], source: str, faults: Faults
) -> StateDictMismatchError:
    """Return the error for a state dict that does not fit, with the architecture that it fits."""
    likely, fits = "", None
    best = faults.share
    for other in _of_similar_size(spec, state_dict):
        others_faults = match(other.name, state_dict).faults
        if not others_faults:
            likely, fits = say("It fits {model}; choose that model.", model=other.title), other.name
            break
        if others_faults.share > max(best, _ALIKE):
            likely = say(
                "It is most like {model}, which it does not fit either.", model=other.title
            )
            best = others_faults.share
    return StateDictMismatchError(source, spec.title, faults, likely, fits)


def _of_similar_size(spec: ModelSpec, state_dict: Mapping[str, Tensor]) -> list[ModelSpec]:
    """List the other architectures of about as many parameters, nearest first.

    A file may have more classes than the architecture's own weights, or fewer. So its size is
    compared twice: as it is, and without any last layer, taken to be the matrix under the usual
    names.
    """
    learned = {
        key: tensor
        for key, tensor in state_dict.items()
        if not key.endswith(("running_mean", "running_var", "num_batches_tracked"))
        and not any(part.casefold().startswith("aux") for part in key.split("."))
    }
    total = sum(tensor.numel() for tensor in learned.values())
    lasts = [
        tensor
        for key, tensor in learned.items()
        if re.search(r"(^|\.)(fc|head|classifier(\.\d+)?)\.weight$", key) and tensor.dim() >= 2
    ]
    heads = {(len(last), last[0].numel() + 1) for last in lasts if len(last)}

    def distance(other: ModelSpec) -> int:
        classes = spec_classes(other.name)
        sizes = [total, *(total + (classes - own) * width for own, width in heads)]
        return min(abs(size - other.parameters) for size in sizes)

    # An architecture that is there twice, with other weights, is suggested under its own name.
    others = [
        other
        for other in catalog.described_models()
        if other.name != spec.name and not is_borrowed(other.name)
    ]
    return sorted(others, key=distance)[:_NEAREST]


def _first(items: tuple[str, ...], one: str, many: str) -> str:
    """Return ``"12 keys are missing (a, b, c, …)"``; empty without items."""
    if not items:
        return ""
    examples = joined(shorten(item, 120) for item in items[:3])
    more = say(", …") if len(items) > 3 else ""
    return (
        say(
            "{count} key {problem} ({examples}{rest})",
            count=len(items),
            problem=one,
            examples=examples,
            rest=more,
        )
        if len(items) == 1
        else say(
            "{count} keys {problem} ({examples}{rest})",
            count=len(items),
            problem=many,
            examples=examples,
            rest=more,
        )
    )
