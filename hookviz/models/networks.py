"""Build a catalog entry's network with random weights, or with those of a state dict."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.language.saying import say
from hookviz.models import architectures, catalog
from hookviz.models.state_dict_keys import match
from hookviz.models.state_dict_mismatch import state_dict_mismatch
from hookviz.settings import MEGABYTE, settings
from hookviz.types import ModelSpec
from hookviz.wording import memory_size

_FLOAT = 4  # bytes of a float32

_seeding = threading.Lock()  # torch has one generator; one builder at a time may seed it


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """Draw the same random numbers in every such block, and disturb nobody else's generator."""
    with _seeding, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


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
        raise state_dict_mismatch(spec, state_dict, source, matched.faults)
    outline = architectures.outline(spec.name, matched.classes)
    refuse_too_large(spec, sum(outline[key].numel() for key in matched.tensors))
    network = architectures.build_without_memory(spec.name, matched.classes)
    empty = network.state_dict()
    if any(name not in empty for name, _ in network.named_buffers()):
        # No file has these buffers, such as an index of relative positions: they are computed.
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
