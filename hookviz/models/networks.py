"""Build a catalog entry's network with random weights, or with those of a state dict.

A state dict that does not fit is refused with the differences, and with the architecture that it
fits better.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.language.saying import joined, say, sentences
from hookviz.machine.memory import MEGABYTE
from hookviz.models import architectures, catalog
from hookviz.models.architectures import is_borrowed, same_random_numbers, spec_classes
from hookviz.models.state_dict_keys import Faults, match
from hookviz.settings import settings
from hookviz.types import ModelSpec
from hookviz.wording import memory_size

_FLOAT = 4  # bytes of a float32

_NEAREST = 8  # architectures of about the same size that such a state dict is matched to
_ALIKE = 0.9  # share of an architecture's names and shapes that makes it worth a mention


def with_random_weights(spec: ModelSpec, classes: int | None = None) -> nn.Module:
    """Build a catalog model with random weights, which are the same every time.

    Args:
        spec: the catalog's entry.
        classes: how many; those of its own weights by default.

    Raises:
        ModelError: it is too large for this process.
    """
    refuse_too_large(spec, spec.parameters)
    classes = architectures.spec_classes(spec.name) if classes is None else classes
    with same_random_numbers():
        network = architectures.build(spec.name, classes, training_heads=True)
    architectures.drop_training_heads(network)
    return network


def with_weights(spec: ModelSpec, state_dict: Mapping[str, Tensor], source: str) -> nn.Module:
    """Build a catalog model that holds `state_dict`, with as many classes as that has.

    Names may carry prefixes (``module.``, ``model.backbone.``); what lies beside such a prefix,
    such as a loss's own weights, is no part of the network and left out. Tensors of another
    floating point type are converted.

    Args:
        spec: the catalog's entry.
        state_dict: names and tensors, as `read_state_dict` gives them.
        source: what to call it in errors.

    Raises:
        StateDictMismatchError: with the first few of what is missing, unexpected or of another
            shape, and the architecture that fits better where one does.
        ModelError: the network is too large for this process.
    """
    matched = match(spec.name, state_dict)
    if matched.faults:
        raise _state_dict_mismatch(spec, state_dict, source, matched.faults)
    outline = architectures.outline(spec.name, matched.classes)
    refuse_too_large(spec, sum(outline[key].numel() for key in matched.tensors))
    network = architectures.build_without_memory(spec.name, matched.classes)
    empty = network.state_dict()
    if any(name not in empty for name, _ in network.named_buffers()):
        # No file has these buffers, such as an index of relative positions: they are computed.
        with same_random_numbers():
            network = architectures.build(spec.name, matched.classes, training_heads=False)
    else:
        # As `to_empty`, whose empty_like of a meta tensor imports sympy.
        network._apply(  # type: ignore[no-untyped-call]
            lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype)
        )
    empty = network.state_dict()
    # Every file is taken to be of today's layout: its shapes have been compared, and the versions
    # that some layers look for are lost in safetensors and under prefixes.
    filled = OrderedDict((key, matched.tensors.get(key, torch.zeros(()))) for key in empty)
    filled._metadata = empty._metadata  # type: ignore[attr-defined]
    network.load_state_dict(filled)
    return network


def refuse_too_large(spec: ModelSpec, parameters: int) -> None:
    """Raise a `ModelError` for a network of more float32 numbers than may be loaded at all."""
    limit = settings().models_mb * MEGABYTE
    if parameters * _FLOAT <= limit:
        return
    small = [other for other in catalog.described_models() if other.parameters * _FLOAT <= limit]
    family = [other for other in small if other.family == spec.family] or small
    hint = (
        max(family, key=lambda other: other.parameters).title if family else say("A smaller model")
    )
    raise ModelError(
        say(
            "{model} takes {parameters} of memory, and loaded models may take {limit} in "
            "all (HOOKVIZ_MODELS_MB). {hint} fits.",
            model=spec.title,
            parameters=memory_size(parameters * _FLOAT),
            limit=memory_size(limit),
            hint=hint,
        )
    )


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


def _state_dict_mismatch(
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
