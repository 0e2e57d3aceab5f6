"""A catalog entry and a state dict → the network of that architecture with those weights in it."""

import inspect
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.hooking.torch_functions import EveryFunction
from hookviz.models import bundled, catalog, timm_models
from hookviz.settings import MEGABYTE, settings
from hookviz.types import ModelSpec, Preprocess

# Layers that torchvision's DenseNet files spell "norm.1", and its code today "norm1".
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")
# What DataParallel, torch.compile and FSDP put into names, at the start or in the middle.
_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
# What only counts training steps: older files lack it, and nothing reads it here.
_COUNTERS = re.compile(r"(^|\.)(num_batches_tracked|n_averaged)$")
_MOST_CLASSES = 1_000_000
_DEEPEST = 16  # parts of a name that are looked at one by one
_NEAREST = 8  # architectures of about the same size that a misfit is compared with
_ALIKE = 0.9  # share of an architecture's names and shapes that makes it worth a mention

_seeding = threading.Lock()  # torch has one generator; one builder at a time may seed it


class MisfitError(WeightsError):
    """A state dict is not one of the architecture that it was meant for.

    Attributes:
        missing: keys that the architecture has and the state dict lacks.
        unexpected: keys that the architecture does not have.
        misshapen: keys of another shape or type, each with both.
        fits: catalog name of the architecture that fits it wholly; None where none is known.
    """

    def __init__(
        self, source: str, title: str, faults: "_Faults", likely: str = "", fits: str | None = None
    ) -> None:
        self.missing = faults.missing
        self.unexpected = faults.unexpected
        self.misshapen = faults.misshapen
        self.fits = fits
        told = [
            _first(self.missing, "is missing", "are missing"),
            _first(self.unexpected, "is not in the architecture", "are not in the architecture"),
            _first(self.misshapen, "has another shape", "have another shape"),
        ]
        text = f"{source} does not fit {title}: {'; '.join(filter(None, told))}."
        super().__init__(f"{text} {likely}".rstrip())


@dataclass(frozen=True, slots=True)
class _Faults:
    """What keeps a state dict from fitting, and how much of the architecture it does fill."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshapen: tuple[str, ...]
    share: float  # of the architecture's keys, its last layer aside, that are there and right

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.misshapen)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A state dict beside an architecture: its tensors by the architecture's own names."""

    given: Mapping[str, Tensor]
    classes: int
    faults: _Faults


def with_random_weights(spec: ModelSpec) -> nn.Module:
    """A catalog model, untrained: its weights are random and yet the same every time.

    Raises:
        ModelError: it is too large for this process.
    """
    refuse_too_large(spec, spec.parameters)
    with _seeding, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = _built(spec.name, spec_classes(spec.name), training_heads=True)
    _drop_training_heads(network)
    return network


def with_weights(spec: ModelSpec, state: Mapping[str, Tensor], source: str) -> nn.Module:
    """A catalog model that holds `state`, with as many classes as `state` has.

    Names may carry prefixes (``module.``, ``model.backbone.``); what lies beside such a prefix,
    such as a loss's own weights, is no part of the network and left out. Tensors of another
    floating point type are converted.

    Args:
        spec: the catalog's entry.
        state: names and tensors, as `checkpoints.read` gives them.
        source: what to call it in errors.

    Raises:
        MisfitError: with the first few of what is missing, unexpected or of another shape, and the
            architecture that fits better where one does.
        ModelError: the network is too large for this process.
    """
    fit = _fit(spec.name, state)
    if fit.faults:
        raise _misfit(spec, state, source, fit.faults)
    outline = _outline(spec.name, fit.classes)
    refuse_too_large(spec, sum(outline[key].numel() for key in fit.given))
    # Built without memory or random numbers, which a large network takes seconds to draw.
    with _Hollow():
        network = _built(spec.name, fit.classes, training_heads=False)
    network.to_empty(device="cpu")
    own = network.state_dict()
    # Every file is taken to be of today's layout: its shapes have been compared, and the versions
    # that some layers look for are lost in safetensors and under prefixes.
    filled = OrderedDict((key, fit.given.get(key, torch.zeros(()))) for key in own)
    filled._metadata = own._metadata  # type: ignore[attr-defined]
    network.load_state_dict(filled)
    return network


def refuse_too_large(spec: ModelSpec, parameters: int) -> None:
    """Raise a `ModelError` for a network of more float32 numbers than may be loaded at all."""
    limit = settings().models_mb
    size = parameters * 4 / MEGABYTE
    if size <= limit:
        return
    small = [
        other for other in catalog.described_models() if other.parameters * 4 / MEGABYTE <= limit
    ]
    family = [other for other in small if other.family == spec.family] or small
    hint = max(family, key=lambda other: other.parameters).title if family else "A smaller model"
    raise ModelError(
        f"{spec.title} takes {size:,.0f} MB of memory, and loaded models may take {limit:,} MB "
        f"in all (HOOKVIZ_MODELS_MB). {hint} fits."
    )


def spec_classes(name: str) -> int:
    """How many classes a catalog model has by itself."""
    if name.startswith(timm_models.PREFIX):
        return timm_models.classes(name)
    return len(categories(name))


def classes_of(name: str, network: nn.Module) -> int:
    """How many classes a catalog model has as it was built."""
    head = _head(name)
    return len(network.state_dict()[head[0]]) if head else 0  # a backbone has no classes


def categories(name: str) -> tuple[str, ...]:
    """The labels of the data that a catalog model's own weights were trained on."""
    if name.startswith(timm_models.PREFIX):
        return timm_models.categories(name)
    own = bundled.CATEGORIES if name == catalog.BUNDLED else None
    return own or tuple(models.get_model_weights(name).DEFAULT.meta["categories"])


def preprocess(name: str) -> Preprocess | Callable[[Image.Image], Tensor]:
    """The steps from image to input that come with a catalog model's weights."""
    if name == catalog.BUNDLED:
        return bundled.PREPROCESS
    if name.startswith(timm_models.PREFIX):
        return timm_models.preprocess(name)
    steps = models.get_model_weights(name).DEFAULT.transforms()
    return Preprocess(
        resize=steps.resize_size[0],
        crop=steps.crop_size[0],
        mean=tuple(steps.mean),
        std=tuple(steps.std),
        interpolation=steps.interpolation.value,
        antialias=bool(steps.antialias),
    )


class _Hollow(EveryFunction):
    """While it is entered, layers are made without memory for their weights.

    Layers allocate by `torch.empty`. The whole of torch can't be put on the meta device, since
    RegNet computes its widths with tensors.
    """

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` returns, on the meta device where it allocates."""
        options = dict(kwargs)
        if func is torch.empty:
            options["device"] = "meta"
        return func(*args, **options)


def _built(name: str, classes: int, *, training_heads: bool) -> nn.Module:
    if name == catalog.BUNDLED:
        return bundled.ShapesNet(classes)
    if name.startswith(timm_models.PREFIX):
        return timm_models.build(name, classes)
    builder: Callable[..., nn.Module] = models.get_model_builder(name)
    options: dict[str, Any] = {"num_classes": classes}
    if _has_training_heads(builder):
        # GoogLeNet and Inception: their weights come with extra heads and with inputs in another
        # range, and they warn unless told whether they are to be initialised.
        options |= {"aux_logits": training_heads, "transform_input": True, "init_weights": True}
    return builder(**options)


def _has_training_heads(builder: Callable[..., nn.Module]) -> bool:
    made = inspect.signature(builder).return_annotation
    return "aux_logits" in inspect.signature(made).parameters


def _drop_training_heads(network: nn.Module) -> None:
    """Take out what only training uses, as torchvision does: no forward pass in eval runs it."""
    if getattr(network, "aux_logits", False) is True:
        network.aux_logits = False  # type: ignore[assignment]
        for child, _ in list(network.named_children()):
            if child.casefold().startswith("aux"):
                setattr(network, child, None)


@lru_cache(maxsize=256)
def _outline(name: str, classes: int, *, training_heads: bool = False) -> Mapping[str, Tensor]:
    """The state dict of an architecture without values, which takes no memory."""
    with _Hollow():
        network = _built(name, classes, training_heads=training_heads)
    return MappingProxyType({key: own.to("meta") for key, own in network.state_dict().items()})


def _head(name: str) -> tuple[str, ...]:
    """The keys whose shapes depend on the class count, weights before biases."""
    classes = spec_classes(name)
    more = _outline(name, classes + 1)
    return tuple(
        key for key, own in _outline(name, classes).items() if own.shape != more[key].shape
    )


def _fit(name: str, state: Mapping[str, Tensor]) -> _Fit:
    whole = _outline(name, spec_classes(name), training_heads=True)
    head = _head(name)
    renamed = _renamed(state, whole)
    renamed = _with_plain_head(renamed, whole, head[0]) if head else renamed
    classes = (_classes(renamed, whole, head) if head else 0) or spec_classes(name)
    own = _outline(name, classes)
    wrong = {
        key: fault
        for key, expected in own.items()
        if key in renamed and (fault := _difference(renamed[key], expected))
    }
    needed = [key for key in own if not _COUNTERS.search(key)]
    missing = [key for key in needed if key not in renamed]
    body = [key for key in needed if key not in head]
    faults = _Faults(
        missing=tuple(missing),
        unexpected=tuple(k for k in renamed if k not in whole and not _COUNTERS.search(k)),
        misshapen=tuple(f"{key} {fault}" for key, fault in wrong.items()),
        share=sum(key in renamed and key not in wrong for key in body) / len(body),
    )
    return _Fit({key: renamed[key] for key in own if key in renamed}, classes, faults)


def _renamed(state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`state` under the architecture's names, as far as prefixes and older spellings hide them."""
    plain = {key if key in own else _without_wrappers(key): key for key in state}
    prefixes: Counter[str] = Counter()
    for key in plain:
        parts = key.split(".", _DEEPEST)
        for start in range(len(parts)):
            if ".".join(parts[start:]) in own:
                prefixes[".".join([*parts[:start], ""])] += 1
    # The most common one; where two are equally common the first, and none at all before any.
    prefix = max(prefixes, key=lambda found: (prefixes[found], found == ""), default="")
    return {
        key.removeprefix(prefix): state[given]
        for key, given in plain.items()
        if key.startswith(prefix)
    }


def _with_plain_head(
    given: dict[str, Tensor], own: Mapping[str, Tensor], weight: str
) -> dict[str, Tensor]:
    """`given` with a last layer that was put in anew, such as ``fc.1``, under its usual name.

    That is what ``model.fc = Sequential(Dropout(), Linear(512, 10))`` saves; a head of more than
    one layer with weights stays as it is, and does not fit.
    """
    top = weight.partition(".")[0]
    new = [
        key
        for key in given
        if key not in own and key.partition(".")[0] == top and key.endswith(".weight")
    ]
    if weight in given or len(new) != 1 or given[new[0]].shape[1:] != own[weight].shape[1:]:
        return given
    names = {new[0]: weight}
    names[new[0].removesuffix("weight") + "bias"] = weight.removesuffix("weight") + "bias"
    return {names.get(key, key): tensor for key, tensor in given.items()}


def _without_wrappers(key: str) -> str:
    parts = key.split(".")
    kept = ".".join(part for part in parts if part not in _WRAPPERS)
    return _OLD_DENSENET.sub(r"\1\2", kept)


def _classes(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], head: Iterable[str]
) -> int | None:
    """How many classes the last layer of a state dict has; None where it has none like it."""
    for key in head:
        if key in given and given[key].dim() and given[key].shape[1:] == own[key].shape[1:]:
            count = len(given[key])
            return count if 1 <= count <= _MOST_CLASSES else None
    return None


def _difference(tensor: Tensor, expected: Tensor) -> str:
    """Why a tensor can't take the place of another; empty where it can."""
    if tensor.shape != expected.shape:
        return f"is {tuple(tensor.shape)} and should be {tuple(expected.shape)}"
    if expected.is_floating_point() and not tensor.is_floating_point():
        return f"holds {str(tensor.dtype).removeprefix('torch.')}, not floating point numbers"
    return ""


def _misfit(
    spec: ModelSpec, state: Mapping[str, Tensor], source: str, faults: _Faults
) -> MisfitError:
    """The error for a state dict that does not fit, with the architecture that it does fit."""
    likely, fits = "", None
    best = faults.share
    for other in _of_similar_size(spec, state):
        found = _fit(other.name, state).faults
        if not found:
            likely, fits = f"It fits {other.title}; choose that model.", other.name
            break
        if found.share > max(best, _ALIKE):
            likely, best = (
                f"It is most like {other.title}, which it does not fit either.",
                found.share,
            )
    return MisfitError(source, spec.title, faults, likely, fits)


def _of_similar_size(spec: ModelSpec, state: Mapping[str, Tensor]) -> list[ModelSpec]:
    """The other architectures of about as many parameters, nearest first.

    A file may have more classes than the architecture's own weights, or fewer. So its size is
    compared twice: as it is, and without any last layer, taken to be the matrix under the usual
    names.
    """
    learned = {
        key: tensor
        for key, tensor in state.items()
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

    others = [other for other in catalog.described_models() if other.name != spec.name]
    return sorted(others, key=distance)[:_NEAREST]


def _first(items: tuple[str, ...], one: str, many: str) -> str:
    """``"12 keys are missing (a, b, c, …)"``, or nothing where there are none."""
    if not items:
        return ""
    some = ", ".join(shorten(item, 120) for item in items[:3])
    more = ", …" if len(items) > 3 else ""
    return f"{len(items)} {f'key {one}' if len(items) == 1 else f'keys {many}'} ({some}{more})"
