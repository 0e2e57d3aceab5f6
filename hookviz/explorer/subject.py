"""Say what questions are answered about: a network, what it was given, and what is kept of it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

import torch

from hookviz.atlas.atlas import Atlas
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.explaining.receptive_fields.receptive_field import (
    Fields,
    are_fields_known,
    receptive_fields,
)
from hookviz.hooking.network_state import is_shared
from hookviz.types import Capture, InputImage, LayerInfo, Model, ModelInput, Progress, ignore


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


def at_once(*_asked: object) -> AbstractContextManager[Run]:
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
        offered: the layers that can be looked at, where a lens says which; else there are lists.
        begins_at: which of them is looked at where none is chosen; else the first.
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
        """Return what tells recordings of this network on this input from others in a cache."""
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
