"""Load a model of the catalog, with its own weights, random ones or those of a checkpoint."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torchvision import models
from torchvision.models import WeightsEnum

from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.hooking.device import with_numbers
from hookviz.hooking.network_state import share
from hookviz.language.saying import joined, say
from hookviz.models import architectures, catalog, hugging_face, networks
from hookviz.models.catalog import source_of
from hookviz.models.checkpoints.files import StateDict, read_checkpoint, read_state_dict
from hookviz.models.fetching import downloads
from hookviz.models.labels import read_labels
from hookviz.models.networks import network_names
from hookviz.models.wrapping import wrap
from hookviz.outputs.answer import BOXES, LOGITS, MAPS, Output
from hookviz.paths import path_of
from hookviz.types import Model, ModelSpec
from hookviz.weights_digest import weights_digest

_OUTPUTS = {"segmentation": MAPS, "detection": BOXES}  # by task; classes of all others

Labels = Path | str | bytes | Sequence[str]
"""A label per class: a file, the bytes of one, or the labels themselves."""


@torch.inference_mode(mode=False)  # its tensors are ordinary ones wherever it is called
@with_numbers
def load_model(
    name: str,
    weights: str | Path | WeightsEnum = "pretrained",
    *,
    device: str | torch.device = "cpu",
    half: bool = False,
    labels: Labels | None = None,
    progress: downloads.Report | None = None,
    key: str | None = None,
) -> Model:
    """Load a model of the catalog, frozen and in eval mode.

    Args:
        name: one of `list_models`, for example ``"resnet34"``; or of Hugging Face's hub,
            ``"hf:google/vit-base-patch16-224"``, or ``"hf:"`` and the path of such a folder, by
            transformers. Such a network is looked at as one of your own, see `wrap`.
        weights: ``"pretrained"``, downloaded once; ``"random"`` (the same on every call); or the
            path of a checkpoint, ``.safetensors`` or a state dict that torch saved, with any
            number of classes. A member of torchvision's, such as
            ``ResNet18_Weights.DEFAULT``, is "pretrained" where it is the catalog's.
        device: ``"auto"`` (the first there is of cuda, mps and cpu), ``"cpu"``, ``"cuda"``,
            ``"cuda:1"`` or ``"mps"``.
        half: compute in half precision, on a GPU only.
        labels: a label per class in place of the data set's own; see `read_labels`.
        progress: told how far a download is; what it raises ends the download.
        key: where a checkpoint holds several networks, as student and teacher or a model and its
            average, the key of the one that is taken. `Model.note` says which there are.

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
    if hugging_face.owns(name):
        on_device = find_device(device, half=half)
        return _of_hugging_face(name, weights, labels, on_device, half=half)
    spec = catalog.find_model(name)
    on_device = find_device(device, half=half)
    if isinstance(weights, WeightsEnum):
        weights = _of_torchvision(spec, weights)
    if not isinstance(weights, str | Path):
        raise WeightsError(
            say(
                "weights={weights} is none of 'pretrained', 'random' and the path of a checkpoint.",
                weights=shorten(repr(weights)),
            )
        )
    if weights == "random":
        network, origin = networks.with_random_weights(spec), "random"
    elif weights == "pretrained":
        networks.refuse_too_large(spec, spec.parameters)
        network, origin = _pretrained(spec, progress), "pretrained"
    else:
        path = path_of(weights)
        checkpoint = read_checkpoint(path, key=key)
        network = networks.with_weights(spec, checkpoint.tensors, shorten(path.name))
        model = _as_model(spec, network, path.name, labels, on_device, half=half)
        note = _others_in(spec, checkpoint, path.name) if key is None else ""
        return replace(model, weights_note=note)
    if key is not None:
        raise WeightsError(
            say("key={key!r} is for the path of a checkpoint; leave it out.", key=shorten(key))
        )
    return _as_model(spec, network, origin, labels, on_device, half=half)


@torch.inference_mode(mode=False)
def load_checkpoint(
    name: str,
    data: bytes,
    file_name: str,
    *,
    labels: Labels | None = None,
    device: str | torch.device = "cpu",
    half: bool = False,
) -> Model:
    """Load a model of the catalog with the weights in an uploaded file.

    Args:
        name: the architecture, one of `list_models`.
        data: the file's bytes.
        file_name: the person's name of the file.
        labels: as for `load_model`.
        device: as for `load_model`.
        half: as for `load_model`.

    Raises:
        HookVizError: as `load_model` does.
    """
    spec = catalog.find_model(name)
    on_device = find_device(device, half=half)
    checkpoint = read_checkpoint(data, file_name)
    network = networks.with_weights(spec, checkpoint.tensors, shorten(file_name))
    model = _as_model(spec, network, file_name, labels, on_device, half=half)
    return replace(model, weights_note=_others_in(spec, checkpoint, file_name))


def _others_in(spec: ModelSpec, checkpoint: StateDict, name: str) -> str:
    """Return the note on several networks in a file: the loaded one, and the others' keys."""
    loaded, *others = network_names(spec.name, checkpoint.tensors) or ("",)
    if not others:
        loaded, others = checkpoint.key, list(checkpoint.others)
    if not others:
        return ""
    return say(
        "{file} holds several sets of weights: {taken} was taken. load_model(…, key={other!r}) "
        "takes another; there are {others}.",
        file=shorten(name),
        taken=shorten(repr(loaded)) if loaded else say("the one at its top"),
        other=shorten(others[0]),
        others=joined(shorten(repr(each), 40) for each in others[:5]),
    )


def _of_hugging_face(
    name: str, weights: object, labels: Labels | None, device: torch.device, *, half: bool
) -> Model:
    if weights not in ("pretrained", "random"):
        raise WeightsError(
            say(
                "weights={weights} is neither 'pretrained' nor 'random', which {name} can have. "
                "With weights of your own, give the folder that they were saved to: hf:FOLDER.",
                weights=shorten(repr(weights)),
                name=shorten(name),
            )
        )
    network, processor = hugging_face.load(name, random=weights == "random")
    network.to(device, torch.float16 if half else None)
    model = wrap(network, processor, name=hugging_face.short_name(name))
    if weights == "random":
        model = replace(model, weights="random")
    if labels is not None:
        classes = int(getattr(network, "num_labels", 0))
        model = replace(model, categories=_read_labels(labels, classes))
    return model


def _of_torchvision(spec: ModelSpec, weights: WeightsEnum) -> str:
    """Return ``"pretrained"`` where these are the weights that the catalog's model comes with.

    Raises:
        WeightsError: they are others.
    """
    own = None
    if spec.name in models.list_models(module=models):
        own = models.get_model_weights(spec.name).DEFAULT
    if weights is own:
        return "pretrained"
    hint = say("{weights} are", weights=own) if own else "weights='pretrained' is"
    raise WeightsError(
        say(
            "{weights} are not the weights that {model} comes with here; {hint}. A file "
            "with others, downloaded first, can be given by its path.",
            weights=weights,
            model=spec.title,
            hint=hint,
        )
    )


def _pretrained(spec: ModelSpec, progress: downloads.Report | None) -> nn.Module:
    """Build the network with its own weights, from this machine or downloaded to torch's folder."""
    title = say("The pretrained weights of {model}", model=spec.title)
    source = source_of(spec.name)
    if source.weights_file is not None:
        state_dict = read_state_dict(source.weights_file(spec.name))
        return networks.with_weights(spec, state_dict, title)
    if source.build_pretrained is not None:
        return source.build_pretrained(spec.name)
    path = catalog.weights_path(spec.name)
    if not path.is_file():
        try:
            path = downloads.fetch(catalog.weights_url(spec.name), path, progress)
        except WeightsError as error:
            raise WeightsError(
                say(
                    "{title} ({megabytes:.0f} MB) can't be had: {reason}. Random weights "
                    "and the bundled models work without a network.",
                    title=title,
                    megabytes=spec.download_bytes / 1e6,
                    reason=str(error).rstrip("."),
                )
            ) from error
    try:
        return networks.with_weights(spec, read_state_dict(path), path.name)
    except WeightsError as error:
        raise WeightsError(
            say(
                "{title} can't be used from {path}: {error} `hookviz fetch --check` verifies "
                "the file; where it is removed, it is downloaded again.",
                title=title,
                path=path,
                error=error,
            )
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
    share(network)
    if labels is None:
        own = architectures.categories(spec.name)
        categories = own if len(own) == classes else ()
    else:
        categories = _read_labels(labels, classes)
    return Model(
        name=spec.name,
        title=spec.title,
        network=network,
        fixed_digest=weights_digest(network),
        weights=origin,
        categories=categories,
        preprocess=architectures.preprocess(spec.name),
        min_size=spec.min_size,
        output=Output(_OUTPUTS.get(spec.task, LOGITS), is_said=False),
    )


def _read_labels(labels: Labels, classes: int) -> tuple[str, ...]:
    source = say("the list of labels")
    if isinstance(labels, str):
        labels = path_of(labels)
    if isinstance(labels, Path | bytes):
        source = shorten(labels.name) if isinstance(labels, Path) else say("the file of labels")
        labels = read_labels(labels)
    if len(labels) != classes:
        raise WeightsError(
            say(
                "{source} has {label_count:,} labels, and the network has "
                "{classes:,} classes; give one label per class, in the order of its outputs.",
                source=source[:1].upper() + source[1:],
                label_count=len(labels),
                classes=classes,
            )
        )
    return tuple(map(str, labels))


def list_devices() -> tuple[str, ...]:
    """List the devices that can compute networks, fastest first; ``"cpu"`` is always the last."""
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return (*cuda, *mps, "cpu")


def find_device(name: str | torch.device, *, half: bool = False) -> torch.device:
    """Return the device called `name`; ``"auto"`` is the fastest, ``"cuda"`` the first GPU.

    Raises:
        ModelError: it is not there, or can't compute in half precision where that is asked for.
    """
    devices = list_devices()
    name = str(name)
    plain = name.strip().casefold()
    device = {"auto": devices[0], "cuda": "cuda:0", "gpu": devices[0]}.get(plain, plain)
    if device not in devices or (plain == "gpu" and device == "cpu"):
        raise ModelError(
            say(
                "There is no device {name!r} here; there is {devices} (auto takes "
                "{automatic_device}).",
                name=shorten(name),
                devices=joined(devices),
                automatic_device=devices[0],
            )
        )
    if half and device == "cpu":
        raise ModelError(
            say(
                "Half precision is for GPUs: on the CPU it is slower than full precision and "
                "less exact. Leave it out, or choose another device; there is {devices}.",
                devices=joined(devices),
            )
        )
    return torch.device(device)
