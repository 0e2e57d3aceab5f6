"""An atlas as it was read from its file: what excites each channel, and what can be asked of it."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas.answers import AtlasImage, ChannelAnswer, LayerStatistics, TopActivation
from hookviz.atlas.patches import opened
from hookviz.capturing.features import steps
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, UnknownNameError, shorten
from hookviz.language.saying import say
from hookviz.types import Model, Pixels


@dataclass(frozen=True, eq=False)
class Atlas:
    """What excites each channel of a model, over many images; `read_atlas` reads one.

    Attributes:
        path: the folder ``NAME.atlas``; a made-up name where it is in memory alone.
        model: the model's catalog name.
        title: how to show the model.
        weights: ``"pretrained"``, ``"random"`` or a file's name.
        digest: of the model.
        top: how many images are kept of each channel at most.
        layers: how many channels each layer has, by written address, in order of execution.
        images: those that are among the strongest of some channel.
        classes: how many images each class has; empty without classes.
        counts: ``images`` that there were, ``tallied``, ``repeated`` and ``left_out``.
        left_out: why images were left out, by their names; the first thousand.
        options: what else it was made with: ``preprocess``, ``size``, ``batch``, ``dtype``,
            ``patch``, ``names``.
    """

    path: Path
    model: str
    title: str
    weights: str
    digest: str
    top: int
    layers: Mapping[str, int] = field(repr=False)
    images: tuple[AtlasImage, ...] = field(repr=False)
    classes: Mapping[str, int]
    counts: Mapping[str, int]
    left_out: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    _numbers: Mapping[str, NDArray[Any]] = field(repr=False)
    _patches: Path | bytes = field(repr=False)

    def top_activations(self, layer: str, channel: int) -> tuple[TopActivation, ...]:
        """The images that excite a channel most, strongest first.

        Raises:
            UnknownLayerError: the atlas has no such layer.
            SettingError: the layer has no such channel.
            HookVizError: the patches can't be read any more.
        """
        row = self._row(layer, channel)
        ranks = np.flatnonzero(self._numbers["image"][row] >= 0).tolist()
        patches = self._pixels(self._numbers["patch"][row, ranks].tolist())
        return tuple(
            self._excitation(row, rank, patch) for rank, patch in zip(ranks, patches, strict=True)
        )

    def first_patches(self, layer: str) -> tuple[Pixels | None, ...]:
        """The strongest image's patch for each channel of a layer; None where there is none.

        Raises:
            UnknownLayerError: the atlas has no such layer.
            HookVizError: the patches can't be read any more.
        """
        return self._pixels(self._numbers["patch"][self._rows(layer), 0].tolist())

    def statistics(self, layer: str) -> LayerStatistics:
        """What a layer's channels put out over all images.

        Raises:
            UnknownLayerError: the atlas has no such layer.
        """
        rows, every = self._rows(layer), self._numbers
        return LayerStatistics(
            mean=every["mean"][rows],
            mean_maximum=every["mean_maximum"][rows],
            zeros=every["zeros"][rows],
            strongest=every["strongest"][rows] / max(1, self.counts["tallied"]),
            not_finite=every["not_finite"][rows],
            histogram=every["histogram"][rows],
            class_maximum=every["class_maximum"][:, rows],
            widths=np.ldexp(1.0, every["exponent"][rows].astype(np.int32)),
        )

    def channels_of_class(self, name: str, count: int = 20) -> tuple[ChannelAnswer, ...]:
        """The channels that answer most to a class.

        Those with the largest share of its images among their strongest come first, of equal shares
        those whose mean maximum for the class stands out most among the classes.

        Raises:
            UnknownNameError: there is no such class; an atlas of images that lie in no folders has
                none.
        """
        if name not in self.classes:
            raise UnknownNameError(say("class in the atlas"), name, self.classes)
        number = list(self.classes).index(name)
        is_of = np.array([image.category == name for image in self.images])
        entries = self._numbers["image"]
        there = entries >= 0
        of_class = there & is_of[entries]
        shares = of_class.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        maxima = self._numbers["class_maximum"].astype(np.float64)
        spread = maxima.std(axis=0)
        contrast = np.divide(
            maxima[number] - maxima.mean(axis=0),
            spread,
            out=np.zeros_like(spread),
            where=spread > 0,
        )
        order = np.lexsort((-contrast, -shares))
        rows = [row for row in order[: max(0, count)].tolist() if of_class[row].any()]
        return tuple(
            self._answer(row, int(of_class[row].argmax()), float(shares[row]), float(contrast[row]))
            for row in rows
        )

    def channels_of_image(self, image: str, count: int = 20) -> tuple[ChannelAnswer, ...]:
        """The channels that have an image among their strongest, first those where it is the first.

        Of equal ranks, those come first for which it stands out most: by how far its value is above
        the channel's mean maximum, as a share of it.

        Args:
            image: its name, or its digest.
            count: how many at most.

        Raises:
            UnknownNameError: no channel has such an image among its strongest.
        """
        numbers = [
            number for number, each in enumerate(self.images) if image in (each.name, each.digest)
        ]
        if not numbers:
            names = [each.name for each in self.images]
            raise UnknownNameError(say("image among the strongest of any channel"), image, names)
        rows, ranks = np.nonzero(np.isin(self._numbers["image"], numbers))
        usual = self._numbers["mean_maximum"][rows]
        ahead = (self._numbers["value"][rows, ranks] - usual) / np.maximum(np.abs(usual), 1e-12)
        order = np.lexsort((-ahead, ranks))[: max(0, count)]
        return tuple(self._answer(int(rows[at]), int(ranks[at]), 1.0, 0.0) for at in order)

    def belongs_to(self, model: Model) -> bool:
        """Whether it was made with this very network, and inputs made in the same way."""
        return self.digest == model.digest and self.options["preprocess"] == steps(model)

    def check(self, model: Model) -> None:
        """Nothing, where it belongs to a model.

        Raises:
            HookVizError: it was made with other weights, or other inputs.
        """
        if self.belongs_to(model):
            return
        of = say(
            "{title} ({weights} weights)", title=shorten(self.title), weights=shorten(self.weights)
        )
        what = (
            say(
                "digest {atlas_digest}, and this is {model} ({weights} weights), digest "
                "{model_digest}",
                atlas_digest=shorten(self.digest[:12]),
                model=model.title,
                weights=model.weights,
                model_digest=model.digest[:12],
            )
            if self.digest != model.digest
            else say("whose inputs were made of images in another way")
        )
        raise HookVizError(
            say(
                "The atlas {path!r} was made with {atlas_model}, {difference}. Load that one, or "
                "make an atlas of this one: hookviz atlas.",
                path=shorten(self.path.name),
                atlas_model=of,
                difference=what,
            )
        )

    def picture(self, image: AtlasImage) -> Path | None:
        """Where an image is, if it is there.

        Never outside of the folder that the atlas lies in, whatever the file says, by whichever
        links.
        """
        if not image.path:
            return None
        folder = self.path.parent.resolve()
        try:
            real = (folder / image.path).resolve()
            inside = real.is_relative_to(folder) and real.is_file()
        except (OSError, ValueError, RuntimeError):  # a zero byte, too long, links in a circle
            return None
        return real if inside else None

    def described(self) -> dict[str, Any]:
        """What it is of and how it was made, as plain data."""
        return {
            "model": self.model,
            "digest": self.digest,
            "images": self.counts["images"],
            "top": self.top,
            **self.options,
        }

    @cached_property
    def _firsts(self) -> dict[str, int]:
        """The place of each layer's first channel among all."""
        ends = np.cumsum([0, *self.layers.values()])
        return dict(zip(self.layers, ends[:-1].tolist(), strict=True))

    def _rows(self, layer: str) -> slice:
        if layer not in self.layers:
            raise UnknownLayerError(say("layer in the atlas"), layer, self.layers)
        return slice(self._firsts[layer], self._firsts[layer] + self.layers[layer])

    def _row(self, layer: str, channel: int) -> int:
        rows = self._rows(layer)
        count = rows.stop - rows.start
        if isinstance(channel, bool) or not 0 <= channel < count:
            raise SettingError(
                say(
                    "There is no channel {channel} in {layer}: it has {count:,}, counted from 0.",
                    channel=channel,
                    layer=layer,
                    count=count,
                )
            )
        return int(rows.start + channel)

    def _excitation(self, row: int, rank: int, patch: Pixels | None) -> TopActivation:
        every = self._numbers
        number = int(every["patch"][row, rank])
        box = tuple(every["patch_box"][number].tolist()) if number >= 0 else None
        cell = every["cell"][row, rank].tolist()
        return TopActivation(
            image=self.images[every["image"][row, rank]],
            value=float(every["value"][row, rank]),
            cell=(cell[0], cell[1]),
            box=box,
            patch=patch,
        )

    def _answer(self, row: int, rank: int, share: float, contrast: float) -> ChannelAnswer:
        layer = next(name for name, first in reversed(self._firsts.items()) if first <= row)
        value = float(self._numbers["value"][row, rank])
        return ChannelAnswer(layer, row - self._firsts[layer], rank, share, value, contrast)

    def _pixels(self, numbers: Sequence[int]) -> tuple[Pixels | None, ...]:
        """The patches of these numbers; None for -1."""
        starts, side = self._numbers["patch_start"], int(self.options["patch"])
        found: list[Pixels | None] = []
        try:
            with self._opened() as file:
                for number in numbers:
                    if number < 0:
                        found.append(None)
                        continue
                    file.seek(int(starts[number]))
                    data = file.read(int(starts[number + 1] - starts[number]))
                    found.append(
                        opened(
                            data,
                            side,
                            say("Patch {number} of {path!r}", number=number, path=self.path.name),
                        )
                    )
        except OSError as error:
            raise HookVizError(
                say(
                    "The patches of {path!r} can't be read: {reason}.",
                    path=self.path.name,
                    reason=error.strerror or error,
                )
            ) from error
        return tuple(found)

    def _opened(self) -> BinaryIO:
        """The patches, one after another."""
        if isinstance(self._patches, bytes):
            return io.BytesIO(self._patches)
        return self._patches.open("rb")
