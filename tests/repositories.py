"""Small repositories of Hugging Face's kind, with random weights, in folders and in a cache."""

from pathlib import Path
from typing import Any

import pytest
from torch import nn

from tests.networks import seeded
from tests.other_libraries import library

LABELS = ("cat", "dog", "bird")
VIT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32}
VIT |= {"intermediate_size": 32, "patch_size": 8}


def vit(**settings: Any) -> nn.Module:
    """A ViT for three classes and 32 pixels."""
    transformers = library("transformers")
    config = transformers.ViTConfig(**VIT, **{"id2label": dict(enumerate(LABELS)), **settings})
    network: nn.Module = seeded(lambda: transformers.ViTForImageClassification(config)).eval()
    return network


def clip() -> nn.Module:
    """A CLIP, of images and text."""
    transformers = library("transformers")
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
    text |= {"bos_token_id": 1, "eos_token_id": 2, "intermediate_size": 32}
    config = transformers.CLIPConfig(text_config=text, vision_config=VIT, projection_dim=8)
    network: nn.Module = seeded(lambda: transformers.CLIPModel(config))
    return network


def save(network: Any, folder: Path, processor: str = "ViTImageProcessor") -> Path:
    """Write the files that a repository has, as their authors do."""
    network.save_pretrained(folder)
    size = {"height": 32, "width": 32}
    steps = getattr(library("transformers"), processor)(size=size, crop_size=size)
    steps.save_pretrained(folder)
    return folder


def cached(network: Any, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a repository into the Hub's cache, in a folder that is the cache from here on."""
    library("transformers")
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    repository = folder / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0123abcd")
    return save(network, repository / "snapshots" / "0123abcd")
