"""Load networks of Hugging Face's hub, or of a folder, where transformers is installed.

No code of a repository runs: transformers' own classes are filled from safetensors files.
"""

import json
from functools import lru_cache
from importlib.util import find_spec
from math import nan, prod
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import nn

from hookviz.errors import ModelError, WeightsError, shorten
from hookviz.hooking.failing_call import first_line
from hookviz.language.saying import say
from hookviz.models.architectures import same_random_numbers
from hookviz.types import ModelSpec

PREFIX = "hf:"
"""How names begin: ``hf:OWNER/NAME``, or ``hf:`` and the path of a folder."""

FAMILY = "Hugging Face"

INSTALL = "pip install 'hookviz[hf]'"


def owns(name: object) -> bool:
    """Return whether a name is that of a repository or a folder of Hugging Face's kind."""
    return isinstance(name, str) and name.startswith(PREFIX)


def load(name: str, *, random: bool = False) -> tuple[nn.Module, Any]:
    """Load a network and its image processor, from this machine's cache where it is there.

    Args:
        name: ``hf:OWNER/NAME`` or ``hf:`` and the path of a folder.
        random: leave the weights as they begin.

    Raises:
        ModelError: transformers is not installed, or has no such network.
        WeightsError: the repository or its files can't be had.
    """
    if find_spec("transformers") is None:
        raise ModelError(
            say(
                "{name} needs transformers, which is not installed: {command}",
                name=shorten(name),
                command=INSTALL,
            )
        )
    import transformers  # noqa: PLC0415 - takes seconds, and few have it

    where = _repository_or_folder(name)
    is_here = Path(where).is_dir() or name in {spec.name for spec in cached_models()}
    options = {"local_files_only": is_here, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(where, **options)
        processor = transformers.AutoImageProcessor.from_pretrained(where, **options)
        kind = _kind(transformers, config)
        if random:
            network = _untrained(kind, config)
        else:
            network = kind.from_pretrained(where, use_safetensors=True, **options)
    # Behind transformers stands a hub client that raises what its own web library raises.
    except Exception as error:
        raise WeightsError(
            say(
                "{name} can't be loaded by transformers: {reason}. It takes hf:OWNER/NAME or hf: "
                "and a folder, with config.json, preprocessor_config.json and safetensors.",
                name=shorten(name),
                reason=first_line(error).rstrip("."),
            )
        ) from error
    return network.float().eval().requires_grad_(requires_grad=False), processor


def short_name(name: str) -> str:
    """Return the display name of a network; of a folder the last part, as paths are private."""
    folder = Path(name.removeprefix(PREFIX)).expanduser()
    return folder.resolve().name if folder.is_dir() else name


def cached_models() -> tuple[ModelSpec, ...]:
    """Return an entry for each repository of images in this machine's cache that can be loaded."""
    if find_spec("transformers") is None:
        return ()
    from huggingface_hub import constants  # noqa: PLC0415 - transformers brings it

    listed = []
    for reference in sorted(Path(constants.HF_HUB_CACHE).glob("models--*/refs/main")):
        commit = reference.read_text("utf-8").strip()  # of the newest files
        listed.append(_spec(reference.parents[1] / "snapshots" / commit))
    return tuple(filter(None, listed))


def _repository_or_folder(name: str) -> str:
    """Return the repository's name, or the path of a folder that is there."""
    where = name.removeprefix(PREFIX).strip()
    folder = Path(where).expanduser()
    if not where or (where.startswith((".", "/", "~")) and not folder.is_dir()):
        raise ModelError(
            say(
                "{name} names no folder that is there; it can be hf:OWNER/NAME, such as "
                "hf:google/vit-base-patch16-224, or hf: and the path of a folder.",
                name=shorten(name),
            )
        )
    return str(folder) if folder.is_dir() else where


def _kind(transformers: Any, config: Any) -> Any:
    """Return the class that builds a configuration's network, which takes images alone."""
    names = config.architectures or [""]
    if any(name.endswith("ForImageClassification") for name in names):
        return transformers.AutoModelForImageClassification
    tower = names[0].removesuffix("Model") + "VisionModel"  # of CLIP and its like
    for name in (tower, names[0]):
        kind = getattr(transformers, name, None)
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind
    return transformers.AutoModel


def _untrained(kind: Any, config: Any) -> nn.Module:
    expected = getattr(kind, "config_class", type(config))
    config = config if isinstance(config, expected) else config.vision_config
    with same_random_numbers():
        network: nn.Module = getattr(kind, "from_config", kind)(config)
    return network


@lru_cache(maxsize=1000)  # a snapshot is of one commit
def _spec(snapshot: Path) -> ModelSpec | None:
    """Return a snapshot's entry; None where it is no network of images with safetensors."""
    weights = sorted(snapshot.glob("*.safetensors"))
    try:
        processor = json.loads((snapshot / "preprocessor_config.json").read_text("utf-8"))
        parameters = sum(map(_parameters, weights))
    except (OSError, ValueError):
        return None
    is_whole = weights and (snapshot / "config.json").is_file()
    if not is_whole or not {"image_processor_type", "image_mean", "size"} & set(processor):
        return None
    name = PREFIX + snapshot.parents[1].name.removeprefix("models--").replace("--", "/")
    return ModelSpec(
        name=name,
        title=name,
        family=FAMILY,
        parameters=parameters,
        download_bytes=0,
        accuracy=nan,
        trained_on="",
        min_size=1,
        on_disk=True,
    )


def _parameters(file: Path) -> int:
    with safe_open(file, "pt") as tensors:
        return sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
