"""Build a catalog entry's network with random weights, or with those of a state dict.

1. Rename the tensors of the state dict as the architecture does, past prefixes and older spellings.
2. Read the number of classes from its last layer.
3. Compare names and shapes. A state dict that does not fit is refused with the differences, and
   with the architecture that it fits better.
4. Fill a network that was built without memory.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.language.saying import joined, say, sentences
from hookviz.machine.memory import MEGABYTE
from hookviz.models import architectures, catalog
from hookviz.models.architectures import (
    class_keys,
    classes_in,
    is_borrowed,
    outline,
    same_random_numbers,
    spec_classes,
)
from hookviz.settings import settings
from hookviz.types import ModelSpec
from hookviz.wording import memory_size

# Layers that torchvision's DenseNet files spell "norm.1", and its code today "norm1".
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")
WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""What DataParallel, torch.compile and FSDP put into names, at the start or in the middle."""

# What only counts training steps: older files lack it, and nothing reads it here.
_COUNTERS = re.compile(r"(^|\.)(num_batches_tracked|n_averaged)$")
_MOST_CLASSES = 1_000_000
_DEEPEST = 16  # parts of a name that are looked at one by one


@dataclass(frozen=True, slots=True)
class Faults:
    """Differences that keep a state dict from fitting, and how much of the architecture it fills.

    Attributes:
        missing: keys that the architecture has and the state dict lacks.
        unexpected: keys that the architecture does not have.
        misshapen: keys of another shape or type, each with both.
        share: from 0 to 1, of the architecture's keys that are there and right; its last layer,
            which depends on the class count, does not count.
    """

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshapen: tuple[str, ...]
    share: float

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.misshapen)


@dataclass(frozen=True, slots=True)
class Match:
    """A state dict's tensors under the names of an architecture, with its faults.

    Attributes:
        tensors: the architecture's keys, each with the tensor that the state dict has for it.
        classes: how many classes its last layer tells apart.
        faults: differences from the architecture; falsy where it fits.
    """

    tensors: Mapping[str, Tensor]
    classes: int
    faults: Faults


def match(name: str, state_dict: Mapping[str, Tensor]) -> Match:
    """Match a state dict to a catalog model's architecture, past any prefixes of its keys.

    Args:
        name: the model's in the catalog.
        state_dict: keys and tensors, as a checkpoint has them.
    """
    whole = outline(name, spec_classes(name), training_heads=True)
    head = class_keys(name)
    renamed = _renamed(state_dict, whole)
    renamed = _with_plain_head(renamed, whole, head[0]) if head else renamed
    classes = (_classes(name, renamed, whole) if head else 0) or spec_classes(name)
    expected = outline(name, classes)
    wrong = {
        key: fault
        for key, tensor in expected.items()
        if key in renamed and (fault := _difference(renamed[key], tensor))
    }
    needed = [key for key in expected if not _COUNTERS.search(key)]
    missing = [key for key in needed if key not in renamed]
    body = [key for key in needed if key not in head]
    faults = Faults(
        missing=tuple(missing),
        unexpected=tuple(k for k in renamed if k not in whole and not _COUNTERS.search(k)),
        misshapen=tuple(f"{key} {fault}" for key, fault in wrong.items()),
        share=sum(key in renamed and key not in wrong for key in body) / len(body),
    )
    return Match({key: renamed[key] for key in expected if key in renamed}, classes, faults)


def _renamed(state_dict: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename tensors as the architecture does, past prefixes and older spellings."""
    originals = {key if key in expected else _without_wrappers(key): key for key in state_dict}
    prefix = next(iter(_prefixes(originals, expected)), "")
    return {
        key.removeprefix(prefix): state_dict[original]
        for key, original in originals.items()
        if key.startswith(prefix)
    }


def network_names(name: str, state_dict: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return the prefixes of a state dict that each hold the network, that of `match` first."""
    expected = outline(name, spec_classes(name), training_heads=True)
    counts = _prefixes(map(_without_wrappers, state_dict), expected)
    most = max(counts.values(), default=0)
    return tuple(prefix[:-1] for prefix, count in counts.items() if count > most * 0.9)


def _prefixes(keys: Iterable[str], expected: Mapping[str, Tensor]) -> dict[str, int]:
    """Return how many keys are an architecture's after each prefix, the most common first.

    Where two are equally common the first in the file comes first, and none at all before any.
    """
    counts: Counter[str] = Counter()
    for key in keys:
        parts = key.split(".", _DEEPEST)
        for start in range(len(parts)):
            if ".".join(parts[start:]) in expected:
                counts[".".join([*parts[:start], ""])] += 1
    order = sorted(counts, key=lambda prefix: (-counts[prefix], prefix != ""))
    return {prefix: counts[prefix] for prefix in order}


def _with_plain_head(
    tensors: dict[str, Tensor], expected: Mapping[str, Tensor], weight: str
) -> dict[str, Tensor]:
    """Give a replaced last layer, such as ``fc.1``, its usual name.

    That is what ``model.fc = Sequential(Dropout(), Linear(512, 10))`` saves; a head of more than
    one layer with weights stays as it is, and does not fit.
    """
    top = weight.partition(".")[0]
    new = [
        key
        for key in tensors
        if key not in expected and key.partition(".")[0] == top and key.endswith(".weight")
    ]
    if weight in tensors or len(new) != 1:
        return tensors
    if tensors[new[0]].shape[1:] != expected[weight].shape[1:]:
        return tensors
    names = {new[0]: weight}
    names[new[0].removesuffix("weight") + "bias"] = weight.removesuffix("weight") + "bias"
    return {names.get(key, key): tensor for key, tensor in tensors.items()}


def _without_wrappers(key: str) -> str:
    parts = key.split(".")
    plain = ".".join(part for part in parts if part not in WRAPPERS)
    return _OLD_DENSENET.sub(r"\1\2", plain)


def _classes(
    name: str, tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> int | None:
    """Return the number of classes of a state dict's last layer; None where it has none like it."""
    for key in class_keys(name):
        tensor = tensors.get(key)
        if tensor is not None and tensor.dim() and tensor.shape[1:] == expected[key].shape[1:]:
            count = classes_in(name, key, len(tensor))
            return count if 1 <= count <= _MOST_CLASSES else None
    return None


def _difference(tensor: Tensor, expected: Tensor) -> str:
    """Say why a tensor can't take the place of another; empty where it can."""
    if tensor.shape != expected.shape:
        return say(
            "is {shape} and should be {expected_shape}",
            shape=tuple(tensor.shape),
            expected_shape=tuple(expected.shape),
        )
    if expected.is_floating_point() and not tensor.is_floating_point():
        return say(
            "holds {dtype}, not floating point numbers",
            dtype=str(tensor.dtype).removeprefix("torch."),
        )
    return ""


_FLOAT = 4  # bytes of a float32

_NEAREST = 8  # architectures of about the same size that such a state dict is matched to
_LEAST_SHARE = 0.9  # share of an architecture's names and shapes that makes it worth a mention


def with_random_weights(spec: ModelSpec, classes: int | None = None) -> nn.Module:
    """Build a catalog model with random weights, which are the same every time.

    Args:
        spec: the catalog's entry.
        classes: how many; those of its own weights by default.

    Raises:
        ModelError: it is too large for this process.
    """
    refuse_too_large(spec, spec.parameters)
    classes = spec_classes(spec.name) if classes is None else classes
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
        source: its name in errors.

    Raises:
        StateDictMismatchError: with the first few of what is missing, unexpected or of another
            shape, and the architecture that fits better where one does.
        ModelError: the network is too large for this process.
    """
    matched = match(spec.name, state_dict)
    if matched.faults:
        raise _state_dict_mismatch(spec, state_dict, source, matched.faults)
    shapes = outline(spec.name, matched.classes)
    refuse_too_large(spec, sum(shapes[key].numel() for key in matched.tensors))
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
        if others_faults.share > max(best, _LEAST_SHARE):
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
    facts = {
        "count": len(items),
        "examples": joined(shorten(item, 120) for item in items[:3]),
        "rest": say(", …") if len(items) > 3 else "",
    }
    if len(items) == 1:
        return say("{count} key {problem} ({examples}{rest})", problem=one, **facts)
    return say("{count} keys {problem} ({examples}{rest})", problem=many, **facts)
