"""What outlives one run of the page: loaded models, each session's cache, the samples."""

import json
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st

from hookviz import images, loading
from hookviz.cache import Budget, ByteCache
from hookviz.settings import ASSETS, MEGABYTE, settings
from hookviz.types import InputImage, Model

_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class Sample:
    """A picture that ships with HookViz.

    Attributes:
        name: short and stable, for links.
        title: what to call it on the screen.
        alt: what it shows, in a sentence.
        path: the file.
    """

    name: str
    title: str
    alt: str
    path: Path


@cache
def samples() -> tuple[Sample, ...]:
    """The pictures that ship with HookViz; the first is the one to start with."""
    folder = ASSETS / "samples"
    listed = json.loads((folder / "samples.json").read_text("utf-8"))
    return tuple(
        Sample(Path(item["file"]).stem, item["title"], item["alt"], folder / item["file"])
        for item in listed
    )


def load(name: str, weights: str) -> Model:
    """A model that all sessions share; those who ask together wait for one loading."""
    key = (name, weights)
    model: Model | None = _models().get(key)
    if model is not None:
        return model
    with _loading:
        model = _models().get(key)
        if model is None:
            model = loading.load_model(name, weights)
            size = sum(tensor.nbytes for tensor in model.network.state_dict().values())
            _models().put(key, model, size)
        return model


@cache
def _models() -> ByteCache:
    limit = settings().models_mb * MEGABYTE
    return Budget(limit).cache(limit)


@cache
def activations() -> Budget:
    """The bound on what all sessions keep together."""
    return Budget(settings().cache_mb * MEGABYTE)


@st.cache_resource(scope="session", on_release=ByteCache.clear, show_spinner=False)
def session_cache() -> ByteCache:
    """The activations of one session; its bytes come back when the session ends."""
    return activations().cache(settings().session_mb * MEGABYTE)


def decode(data: bytes, name: str, key: str) -> InputImage:
    """The image in an uploaded file, decoded once per session and file."""
    kept: InputImage | None = session_cache().get(("image", key))
    if kept is None:
        kept = images.decode(data, name)
        session_cache().put(("image", key), kept, kept.pixels.nbytes)
    return kept
