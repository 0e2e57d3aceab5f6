"""A catalog entry, a checkpoint or a person's own module → a frozen `Model` in eval mode."""

import copy
import hashlib
import inspect
import pickle
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torchvision import models

from hookviz import bundled, catalog
from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.types import Model, ModelSpec, Preprocess

# Layers that torchvision's DenseNet files spell "norm.1", and its code today "norm1".
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")
_seeding = threading.Lock()  # torch has one generator; one builder at a time may seed it


def load_model(name: str, weights: str | Path = "pretrained", *, device: str = "cpu") -> Model:
    """A model of the catalog, ready to be looked at.

    Args:
        name: one of `list_models`, for example ``"resnet34"``.
        weights: ``"pretrained"``, ``"random"`` (the same on every call), or the path of a
            checkpoint, ``.safetensors`` or a state dict that torch saved.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``.

    Raises:
        UnknownModelError: the catalog has no such model.
        WeightsError: the weights can't be downloaded or read, or don't fit the architecture.
        ModelError: the device is not there.
    """
    spec = catalog.find_model(name)
    if weights == "random":
        network, origin = _architecture(name), "random"
    elif weights == "pretrained":
        network, origin = _architecture(name), "pretrained"
        _fill(network, _pretrained(spec), f"the pretrained weights of {spec.title}")
    else:
        path = Path(weights)
        network, origin = _architecture(name), path.name
        _fill(network, _read_checkpoint(path), shorten(path.name))
    _drop_training_heads(network)
    return Model(
        name=name,
        title=spec.title,
        network=_frozen(network, device),
        digest=weights_digest(network),
        weights=origin,
        categories=_categories(name),
        preprocess=_preprocess(name),
        min_size=spec.min_size,
    )


def wrap(
    module: nn.Module,
    preprocess: Preprocess | Callable[[Image.Image], Tensor] | None = None,
    categories: Sequence[str] = (),
    *,
    name: str | None = None,
) -> Model:
    """A person's own network as a `Model`, as it is now.

    It is a copy: training the module further changes nothing here, and nothing here changes it.

    Args:
        module: any module that takes one ``(1, C, H, W)`` float tensor.
        preprocess: the steps to its input, or a function from an RGB Pillow image to a
            ``(C, H, W)`` tensor; by default 224 pixels and ImageNet's mean and deviation.
        categories: a label per class.
        name: what to call it; the class's name by default.

    Raises:
        ModelError: `module` is no module, or can't be copied.
    """
    if not isinstance(module, nn.Module):
        raise ModelError(f"wrap takes a torch.nn.Module, not {type(module).__name__}.")
    try:
        network = copy.deepcopy(module)
    except Exception as error:
        raise ModelError(f"{type(module).__name__} can't be copied: {error}") from error
    return Model(
        name=name or type(module).__name__,
        title=name or type(module).__name__,
        network=_frozen(network, None),
        digest=weights_digest(network),
        weights="own",
        categories=tuple(categories),
        preprocess=preprocess or Preprocess(resize=256, crop=224),
    )


def weights_digest(network: nn.Module) -> str:
    """Hash of every parameter and buffer with its name, shape and type, as 32 hex digits."""
    digest = hashlib.blake2b(digest_size=16)
    for key, tensor in network.state_dict().items():
        if not isinstance(tensor, Tensor):
            continue
        plain = tensor.detach().to("cpu").contiguous()
        digest.update(f"{key} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _architecture(name: str) -> nn.Module:
    """The untrained network, with weights that are random and yet the same every time."""
    builder: Callable[..., nn.Module] = bundled.ShapesNet
    options: dict[str, Any] = {}
    if name != catalog.BUNDLED:
        builder = models.get_model_builder(name)
        made = inspect.signature(builder).return_annotation
        if "aux_logits" in inspect.signature(made).parameters:
            # GoogLeNet and Inception: their weights come with extra heads and with inputs in
            # another range, and they warn unless told that they are to be initialised.
            options = {"aux_logits": True, "transform_input": True, "init_weights": True}
    with _seeding, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return builder(**options)


def _drop_training_heads(network: nn.Module) -> None:
    """Take out what only training uses, as torchvision does: no forward pass in eval runs it."""
    if getattr(network, "aux_logits", False) is True:
        network.aux_logits = False  # type: ignore[assignment]
        for child, _ in list(network.named_children()):
            if child.casefold().startswith("aux"):
                setattr(network, child, None)


def _pretrained(spec: ModelSpec) -> Mapping[str, Tensor]:
    """The state dict of a catalog model, from this machine or downloaded to torch's own folder."""
    if spec.name == catalog.BUNDLED:
        return load_file(bundled.WEIGHTS_FILE)
    url = catalog.weights_url(spec.name)
    try:
        state: Mapping[str, Tensor] = torch.hub.load_state_dict_from_url(
            url, progress=False, check_hash=True, map_location="cpu", weights_only=True
        )
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise WeightsError(
            f"The pretrained weights of {spec.title} ({spec.download_bytes / 1e6:.0f} MB) can't be "
            f"had from {url}: {shorten(str(error), 200)}. Random weights and the bundled model "
            "work without a network."
        ) from error
    return state


def _read_checkpoint(path: Path) -> Mapping[str, Tensor]:
    """The state dict in a file; nothing in the file is ever executed."""
    if not path.is_file():
        raise WeightsError(
            f"There is no checkpoint {str(path)!r}; "
            'weights are "pretrained", "random" or the path of a file.'
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError, SafetensorError) as error:
        raise WeightsError(
            f"{path.name} can't be read as a checkpoint: {shorten(str(error), 200)}. "
            "A .safetensors file, or a state dict saved by torch.save, works."
        ) from error
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise WeightsError(
            f"{path.name} holds {type(state).__name__}, not a state dict (names and tensors)."
        )
    return state


def _fill(network: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Load `state` into `network`, every key of it and no other.

    Raises:
        WeightsError: with the first few of what is missing, unexpected or of another shape.
    """
    own = network.state_dict()
    given = OrderedDict((_OLD_DENSENET.sub(r"\1\2", key), value) for key, value in state.items())
    # A file without versions is taken to be of today's layout, which safetensors can't tell.
    given._metadata = getattr(state, "_metadata", own._metadata)  # type: ignore[attr-defined]
    problems = [
        f"{key} is {tuple(given[key].shape)} and should be {tuple(own[key].shape)}"
        for key in own
        if key in given and own[key].shape != given[key].shape
    ]
    if not problems:
        result = network.load_state_dict(given, strict=False)
        problems += [f"{key} is missing" for key in result.missing_keys if not _counts(key)]
        problems += [f"{key} is not in the architecture" for key in result.unexpected_keys]
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise WeightsError(f"{source} do not fit: {'; '.join(problems[:3])}{more}.")


def _counts(key: str) -> bool:
    """Whether a key only counts training steps: older files lack it, and nothing reads it here."""
    return key.endswith("num_batches_tracked")


def _frozen(network: nn.Module, device: str | None) -> nn.Module:
    """The network in eval mode with no gradients asked for, on `device`."""
    network.eval().requires_grad_(False)
    if device is None:
        return network
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"The device {device!r} can't be used: {shorten(str(error), 200)}. 'cpu' works."
        ) from error


def _categories(name: str) -> tuple[str, ...]:
    if name == catalog.BUNDLED:
        return bundled.CATEGORIES
    return tuple(models.get_model_weights(name).DEFAULT.meta["categories"])


def _preprocess(name: str) -> Preprocess:
    if name == catalog.BUNDLED:
        return bundled.PREPROCESS
    steps = models.get_model_weights(name).DEFAULT.transforms()
    return Preprocess(
        resize=steps.resize_size[0],
        crop=steps.crop_size[0],
        mean=tuple(steps.mean),
        std=tuple(steps.std),
        interpolation=steps.interpolation.value,
        antialias=bool(steps.antialias),
    )
