"""Match a state dict to an architecture: tensors by the architecture's names, and faults."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from hookviz.language.saying import say
from hookviz.models.architectures import class_keys, classes_in, outline, spec_classes

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
        faults: what keeps it from fitting; falsy where nothing does.
    """

    tensors: Mapping[str, Tensor]
    classes: int
    faults: Faults


def match(name: str, state_dict: Mapping[str, Tensor]) -> Match:
    """Match a state dict to a catalog model's architecture, whatever its keys are prefixed with.

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
    """Give a last layer that was put in anew, such as ``fc.1``, its usual name.

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
