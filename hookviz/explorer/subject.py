"""Define the subject of questions: a network, its input and its caches; make one in Python.

The page makes its subjects of its widgets' values, and gives them the session's own cache.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache as once
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from hookviz.atlas.atlas import Atlas
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.drawing.dimensions import middle_maps
from hookviz.errors import HookVizError, UnknownModelError
from hookviz.explaining.receptive_fields.receptive_field import (
    Fields,
    are_fields_known,
    receptive_fields,
)
from hookviz.hooking.network_state import is_shared
from hookviz.images.reading import read
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.models.catalog import find_model
from hookviz.models.loading import load_model
from hookviz.settings import settings
from hookviz.types import (
    Capture,
    Crop,
    InputImage,
    LayerInfo,
    Model,
    ModelInput,
    Pixels,
    Progress,
    ignore,
)
from hookviz.wording import times


class Limit(Protocol):
    """Time limit of a run, as `hookviz.serving.time_limit.TimeLimit` is one."""

    def within(self, progress: Progress = ignore) -> Progress:
        """Return `progress` as one that raises once the time is over."""

    def over_torch(self) -> AbstractContextManager[None]:
        """Return a block in which any function of torch raises once the time is over."""


class Run(Protocol):
    """Turn to compute, as `hookviz.serving.turns.RunSlot` is one."""

    @property
    def limit(self) -> Limit:
        """Return when the run has to be over."""

    def yielding(self, progress: Progress = ignore) -> Progress:
        """Return a progress callback that lets others compute meanwhile."""


class _Unlimited:
    """Run that nobody else waits for, such as in a notebook."""

    @property
    def limit(self) -> "_Unlimited":
        return self

    def within(self, progress: Progress = ignore) -> Progress:
        return progress

    def over_torch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def yielding(self, progress: Progress = ignore) -> Progress:
        return progress


def between_layers(run: Run, model: Model) -> Progress:
    """Return what a pass calls after each layer: it lets others compute meanwhile.

    A network outside the catalog is locked during a pass, and another run may wait for that lock:
    its passes are only bounded in time.
    """
    return run.yielding() if is_shared(model.network) else run.limit.within()


TakeTurn = Callable[[str, str, str], AbstractContextManager[Run]]
"""Waits for a turn to compute, and holds it for the block. Gets what is run in a person's words, in
a word for logs, and the layer's name or ``""``."""


def at_once(*_label: object) -> AbstractContextManager[Run]:
    """Take a turn where nobody else computes."""
    return nullcontext(_Unlimited())


class Colours(NamedTuple):
    """Colormaps of the page: of signed values, and of values nowhere negative.

    Zero is the page's own ground in both, which may be dark, light, or projected.
    """

    diverging: str = "RdBu_r"
    sequential: str = "gray_r"


@dataclass(frozen=True, eq=False, slots=True)
class Pinned:
    """What is pinned as A.

    Attributes:
        link: as a view's `pinned` has it.
        digest: of its network and input, which with the link tells one from another.
        image: what its image is called.
        title: of its network, with its weights where those are not the pretrained ones.
        step: whose output it is, an `ActivationKey` as text.
        read: computes its maps, ``(C, H, W)``; raises a `HookVizError` where they can't be had.
        run: the run that they are of, with the classes; raises likewise. None where there is none.
    """

    link: str
    digest: str
    image: str
    title: str
    step: str
    read: Callable[[], torch.Tensor] = field(repr=False)
    run: Callable[[], Capture] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Topic:
    """What questions are about, the network and the view aside.

    Attributes:
        model_input: the network's input.
        image: the image that this was made of.
        alt: description of the image, in words.
        image_title: title of the image.
        model_title: title of the network, with its weights where they are not its own.
        cache: keeps what was computed.
        shared: keeps what everybody's passes over a sample put out; None for what is one's own.
        colours: the page's colormaps.
        atlas: of the network's most activating images, where there is one.
        atlas_words: among which images that is, in a person's words.
        image_names: what a patch's image leads to, by the digest of its pixels: the name of a
            sample.
        offered: the layers to choose from, where a lens names them; else there are lists.
        begins_at: the layer that is shown where none is chosen; else the first.
    """

    model_input: ModelInput
    image: InputImage
    cache: ByteCache = field(repr=False)
    alt: str = ""
    image_title: str = ""
    model_title: str = ""
    shared: ByteCache | None = field(default=None, repr=False)
    colours: Colours = field(default_factory=Colours)
    atlas: Atlas | None = field(default=None, repr=False)
    atlas_words: str = ""
    image_names: Mapping[str, str] = field(default_factory=dict, repr=False)
    offered: Sequence[LayerInfo] = field(default=(), repr=False)
    begins_at: str = ""

    def with_network(
        self, model: Model, take_turn: TakeTurn, pinned: Pinned | None = None
    ) -> "Subject":
        """Return the subject with these attributes and everything here."""
        facts = {each.name: getattr(self, each.name) for each in fields(Topic)}
        return Subject(model=model, take_turn=take_turn, pinned=pinned, **facts)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Subject(Topic):
    """What questions are answered about.

    Attributes:
        model: the network.
        take_turn: waits for a turn to compute.
        pinned: the network, image and layer pinned as A; None without.
    """

    model: Model
    take_turn: TakeTurn = at_once
    pinned: Pinned | None = None

    @property
    def trace(self) -> LayerTrace:
        """Return the network's layers, as it runs on that input."""
        return input_trace(self.model, self.model_input)

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the cache key of this network on this input: model name, weights, input."""
        return self.model.name, self.model.digest, self.model_input.digest

    def fields(self) -> Fields:
        """Return the receptive fields of the network's layers, traced in a turn where they are new.

        Raises:
            HookVizError: the turn is not had.
        """
        known = are_fields_known(self.model, self.model_input)
        turn = nullcontext() if known else self.take_turn(self.model.title, "fields", "")
        with turn:
            return receptive_fields(self.model, self.model_input)

    def cached(self, *key: object, compute: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        """Return what the cache or the shared one has under a key, or else compute and keep it.

        Args:
            key: beside `Subject.key`.
            compute: makes the value.
            size: of a value in bytes.
        """
        value = self.kept(*key)
        if value is None:
            value = compute()
            for each in self._caches:
                each.put((*key, *self.key), value, size(value))
        return value

    def kept(self, *key: object) -> Any | None:
        """Return what `cached` would find kept under a key; None where nothing is."""
        found = (each.get((*key, *self.key)) for each in self._caches)
        return next((value for value in found if value is not None), None)

    @property
    def _caches(self) -> tuple[ByteCache, ...]:
        return (self.cache,) if self.shared is None else (self.cache, self.shared)


def make_subject(
    model: Model,
    image: Any,
    *,
    size: int | None = None,
    whole: bool = False,
    cache: ByteCache | None = None,
) -> Subject:
    """Return the subject for questions about a model and an image.

    Args:
        model: the network.
        image: anything that `prepare_input` takes. A tensor or a `ModelInput` is its own image.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        cache: keeps computed values; a new one by default.

    Raises:
        ImageError: as `prepare_input`.
    """
    if isinstance(image, Tensor | ModelInput):
        model_input = prepare_input(model, image, size=size, whole=whole)
        title = say("input of {shape}", shape=times(model_input.tensor.shape[1:]))
        model_input, picture = _with_own_picture(model_input, title)
    else:
        picture = read(image)
        model_input = prepare_input(model, picture, size=size, whole=whole)
    return Subject(
        model=model,
        model_input=model_input,
        image=picture,
        cache=own_cache() if cache is None else cache,
        alt=picture.name,
        image_title=picture.name,
    )


def model_of(capture: Capture) -> Model:
    """Return the model that made a capture: who keeps it, or the catalog's with the same weights.

    Raises:
        HookVizError: nobody keeps it, and it is none of the catalog that is on this machine; or it
            is no capture of one image.
    """
    if not isinstance(capture, Capture):
        raise HookVizError(
            say(
                "A {kind} is no capture of one image; capture(model, image) gives one, and so does "
                "batch[0] of several.",
                kind=type(capture).__name__,
            )
        )
    model = None if capture.made_by is None else capture.made_by()
    if model is not None:
        return model
    with suppress(UnknownModelError):
        if find_model(capture.model).on_disk and capture.weights in ("pretrained", "random"):
            model = load_model(capture.model, capture.weights)
            if model.cache_key == capture.digest:
                return model
    raise HookVizError(
        say(
            "The network of this capture of {model} is gone: a capture holds none. Keep the model "
            "in a variable beside it, as in model = hookviz.wrap(network).",
            model=capture.model,
        )
    )


def own_cache() -> ByteCache:
    """Return an empty cache; all of these together hold as much as a session of the app."""
    budget = _budget()
    return budget.cache(budget.limit)


@once
def _budget() -> Budget:
    return Budget(settings().session_mb * MEGABYTE)


def _with_own_picture(model_input: ModelInput, title: str) -> tuple[ModelInput, InputImage]:
    """Return an input made of its own picture, whole, and that picture."""
    picture = model_input.picture
    if picture is None:
        picture = _stretched(model_input.tensor[0])
    shown = replace(read(Image.fromarray(picture)), name=title)
    crop = None
    if model_input.tensor.dim() == 4:  # neither sound nor a volume
        height, width = model_input.tensor.shape[2:]
        crop = Crop(0, 0, shown.width, shown.height, height, width)
    return replace(model_input, picture=picture, crop=crop), shown


def _stretched(values: Tensor) -> Pixels:
    """Return a tensor as a picture, RGB uint8 ``(H, W, 3)``, from black (least) to white (most).

    Three channels are colours; any other number of channels is averaged.
    """
    maps = middle_maps(values.float()).numpy()
    shown = maps if len(maps) == 3 else maps.mean(axis=0, keepdims=True).repeat(3, axis=0)
    shown = np.nan_to_num(shown, posinf=0.0, neginf=0.0)
    low, high = float(shown.min()), float(shown.max())
    levels = (shown - low) * (255 / (high - low) if high > low else 0)
    picture: Pixels = np.ascontiguousarray(levels.round().astype(np.uint8).transpose(1, 2, 0))
    picture.setflags(write=False)
    return picture
