"""A catalog entry, a checkpoint or a person's own module → a frozen `Model` in eval mode."""

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.hooking import replicas
from hookviz.models import architectures, bundled, catalog, checkpoints, timm_models
from hookviz.models.fetching import downloads
from hookviz.models.labels import read_labels
from hookviz.types import Model, ModelSpec, Preprocess

Labels = Path | str | bytes | Sequence[str]
"""A label per class: a file, the bytes of one, or the labels themselves."""

_SIDES = (224, 28, 32, 48, 64, 96, 128, 160, 192, 256, 299, 384, 512)  # likeliest inputs first


def load_model(
    name: str,
    weights: str | Path = "pretrained",
    *,
    device: str = "cpu",
    half: bool = False,
    labels: Labels | None = None,
    progress: downloads.Report | None = None,
) -> Model:
    """A model of the catalog, ready to be looked at.

    Args:
        name: one of `list_models`, for example ``"resnet34"``.
        weights: ``"pretrained"``, downloaded once; ``"random"`` (the same on every call); or the
            path of a checkpoint, ``.safetensors`` or a state dict that torch saved, with any
            number of classes.
        device: ``"auto"`` (the first there is of cuda, mps and cpu), ``"cpu"``, ``"cuda"``,
            ``"cuda:1"`` or ``"mps"``.
        half: compute in half precision, on a GPU only.
        labels: a label per class in place of the data set's own; see `read_labels`.
        progress: told how far a download is; what it raises ends the download.

    Raises:
        UnknownModelError: the catalog has no such model.
        WeightsError: the weights can't be had or read, or don't fit the architecture, or there is
            not one label per class.
        ModelError: the device is not there, or the model is larger than ``HOOKVIZ_MODELS_MB``.

    >>> model = hookviz.load_model("shapesnet")
    >>> model.title, model.weights, model.categories[:3]
    ('ShapesNet', 'pretrained', ('circle', 'triangle', 'square'))
    >>> hookviz.load_model("squeezenet1_1", weights="random").weights
    'random'
    """
    spec = catalog.find_model(name)
    place = find_device(device, half=half)
    if weights == "random":
        network, origin = architectures.with_random_weights(spec), "random"
    elif weights == "pretrained":
        architectures.refuse_too_large(spec, spec.parameters)
        network, origin = _pretrained(spec, progress), "pretrained"
    else:
        path = Path(weights).expanduser()
        state = checkpoints.read(path)
        network, origin = architectures.with_weights(spec, state, shorten(path.name)), path.name
    return _as_model(spec, network, origin, labels, place, half=half)


def load_checkpoint(
    name: str,
    data: bytes,
    file_name: str,
    *,
    labels: Labels | None = None,
    device: str = "cpu",
    half: bool = False,
) -> Model:
    """A model of the catalog with the weights in an uploaded file.

    Args:
        name: the architecture, one of `list_models`.
        data: the file's bytes.
        file_name: what the person calls it.
        labels: as for `load_model`.
        device: as for `load_model`.
        half: as for `load_model`.

    Raises:
        HookVizError: as `load_model` does.
    """
    spec = catalog.find_model(name)
    place = find_device(device, half=half)
    state = checkpoints.read(data, file_name)
    network = architectures.with_weights(spec, state, shorten(file_name))
    return _as_model(spec, network, file_name, labels, place, half=half)


def wrap(
    module: nn.Module | Model,
    preprocess: Preprocess | Callable[[Image.Image], Tensor] | None = None,
    categories: Sequence[str] = (),
    *,
    name: str | None = None,
) -> Model:
    """A person's own network as a `Model`, as it is now.

    It is a copy: training the module further changes nothing here, and nothing here changes it.

    Args:
        module: any module that takes one ``(1, C, H, W)`` float tensor. A `Model` is given back
            as it is, with what else is given here put in.
        preprocess: the steps to its input, or a function from an RGB Pillow image to a
            ``(C, H, W)`` tensor. By default as many channels as the first conv layer takes: 3 with
            ImageNet's mean and deviation, 1 as grey from -1 to 1, and any other number from
            tensors alone; at 224 pixels, or at another usual size where the network takes no 224.
        categories: a label per class.
        name: what to call it; the class's name by default.

    Raises:
        ModelError: `module` is no module, or can't be copied.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=64, crop=64), name="two layers")
    >>> hookviz.capture(model, "assets/samples/cat.jpg")["0"].values.shape  # (C, H, W)
    torch.Size([8, 62, 62])
    """
    if isinstance(module, Model):
        given: dict[str, Any] = {"preprocess": preprocess, "categories": tuple(categories)}
        given |= {"name": name, "title": name}
        changes = {key: value for key, value in given.items() if value}
        return replace(module, **changes) if changes else module
    if not isinstance(module, nn.Module):
        raise ModelError(f"wrap takes a torch.nn.Module, not {type(module).__name__}.")
    try:
        network = copy.deepcopy(module)
    except Exception as error:
        raise ModelError(f"{type(module).__name__} can't be copied: {error}") from error
    network.eval().requires_grad_(False)
    return Model(
        name=name or type(module).__name__,
        title=name or type(module).__name__,
        network=network,
        digest=weights_digest(network),
        weights="own",
        categories=tuple(categories),
        preprocess=preprocess or _usual_preprocess(network),
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


def list_devices() -> tuple[str, ...]:
    """Where networks can compute on this machine, fastest first; ``"cpu"`` is always the last."""
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return (*cuda, *mps, "cpu")


def find_device(name: str, *, half: bool = False) -> torch.device:
    """The device called `name`; ``"auto"`` is the fastest there is, ``"cuda"`` the first GPU.

    Raises:
        ModelError: it is not there, or can't compute in half precision where that is asked for.
    """
    there = list_devices()
    plain = name.strip().casefold()
    found = {"auto": there[0], "cuda": "cuda:0", "gpu": there[0]}.get(plain, plain)
    if found not in there or (plain == "gpu" and found == "cpu"):
        raise ModelError(
            f"There is no device {shorten(name)!r} here; there is {', '.join(there)} "
            f"(auto takes {there[0]})."
        )
    if half and found == "cpu":
        raise ModelError(
            "Half precision is for GPUs: on the CPU it is slower than full precision and less "
            f"exact. Leave it out, or choose another device; there is {', '.join(there)}."
        )
    return torch.device(found)


def _pretrained(spec: ModelSpec, progress: downloads.Report | None) -> nn.Module:
    """The network with its own weights, from this machine or downloaded to torch's own folder."""
    title = f"The pretrained weights of {spec.title}"
    if spec.name == catalog.BUNDLED:
        return architectures.with_weights(spec, checkpoints.read(bundled.WEIGHTS_FILE), title)
    if spec.name.startswith(timm_models.PREFIX):
        return timm_models.build_pretrained(spec.name)
    path = catalog.weights_path(spec.name)
    if not path.is_file():
        try:
            path = downloads.fetch(catalog.weights_url(spec.name), path, progress)
        except WeightsError as error:
            raise WeightsError(
                f"{title} ({spec.download_bytes / 1e6:.0f} MB) can't be had: "
                f"{str(error).rstrip('.')}. Random weights and the bundled model work without a "
                "network."
            ) from error
    try:
        return architectures.with_weights(spec, checkpoints.read(path), path.name)
    except WeightsError as error:
        raise WeightsError(
            f"{title} can't be used from {path}: {error} `hookviz fetch --check` verifies the "
            "file; where it is removed, it is downloaded again."
        ) from error


def _as_model(
    spec: ModelSpec,
    network: nn.Module,
    origin: str,
    labels: Labels | None,
    device: torch.device,
    *,
    half: bool,
) -> Model:
    classes = architectures.classes_of(spec.name, network)
    network.eval().requires_grad_(False).to(device, torch.float16 if half else None)
    return Model(
        name=spec.name,
        title=spec.title,
        network=network,
        digest=weights_digest(network),
        weights=origin,
        categories=_categories(spec.name, classes, labels),
        preprocess=architectures.preprocess(spec.name),
        min_size=spec.min_size,
    )


def _categories(name: str, classes: int, labels: Labels | None) -> tuple[str, ...]:
    """The labels given, or else the data set's own where these are as many as the classes."""
    if labels is None:
        own = architectures.categories(name)
        return own if len(own) == classes else ()
    source = "the list of labels"
    if isinstance(labels, str):
        labels = Path(labels).expanduser()
    if isinstance(labels, Path | bytes):
        source = shorten(labels.name) if isinstance(labels, Path) else "the file of labels"
        labels = read_labels(labels)
    if len(labels) != classes:
        raise WeightsError(
            f"{source[:1].upper()}{source[1:]} has {len(labels):,} labels, and the network has "
            f"{classes:,} classes; give one label per class, in the order of its outputs."
        )
    return tuple(map(str, labels))


def _usual_preprocess(network: nn.Module) -> Preprocess:
    """What a network most likely takes, by its first conv layer and by which sizes run at all."""
    convs = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    first = next((part for part in network.modules() if isinstance(part, convs)), None)
    channels = first.in_channels if first is not None and first.in_channels > 0 else 3
    own = Preprocess(resize=256, crop=224)
    if channels == 1:
        own = replace(own, mean=(0.5,), std=(0.5,))
    elif channels != 3:  # no image has these; `prepare` says so and asks for a tensor
        own = replace(own, mean=(0.0,) * channels, std=(1.0,) * channels)
    hollow = replicas.shapes_only(network)
    for side in _SIDES:
        try:
            with torch.no_grad():
                hollow(torch.empty(1, channels, side, side, device="meta"))
        except Exception:  # noqa: BLE001, S112 - a person's own code can raise anything
            continue
        return own if side == own.crop else replace(own, resize=side, crop=side)
    return own
