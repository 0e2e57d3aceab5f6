"""Answer questions to an atlas that was read: top images, statistics, channels of a class.

The dataclasses of the answers come first, and `Atlas` after them.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hookviz.atlas.patches import decode_patch
from hookviz.atlas.tally import edges
from hookviz.capturing.features import steps
from hookviz.deprecated import RenamedAttribute
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, UnknownNameError, shorten
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.types import Model, Pixels


@dataclass(frozen=True, slots=True)
class AtlasImage:
    """Image that is among the strongest of some channel.

    Attributes:
        name: its path from the folder that the atlas was made of, or what it was called.
        digest: of its pixels, as `InputImage.digest`; of an input's numbers where one was given.
        category: its class; empty where the atlas has no classes.
        height, width: in pixels; 0 where it had no pixels, or was gone when patches were cut.
        path: its path from the folder that the atlas lies in, as the file says; empty where it lay
            elsewhere. `Atlas.picture` says whether it is there.
    """

    name: str
    digest: str
    category: str
    height: int
    width: int
    path: str = field(default="", repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class TopActivation:
    """One of a channel's strongest activations: its image, value, cell and patch.

    Attributes:
        image: which image.
        value: the activation.
        cell: row and column in the channel's map.
        box: what the cell sees, as top, left, bottom and right in pixels of the original image, the
            last row and column not included; None where that is not known.
        patch: that part of the image, RGB uint8 ``(h, w, 3)``, shrunk; None where there is none.
    """

    image: AtlasImage
    value: float
    cell: tuple[int, int]
    box: tuple[int, int, int, int] | None
    patch: Pixels | None = field(repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class LayerStatistics:
    """Statistics of what a layer's channels put out over all images of the atlas.

    Attributes:
        mean: of all finite values, float64 ``(C,)``.
        mean_maximum: the mean over the images of each image's largest value, float64 ``(C,)``.
        zeros: share of values that are 0, among up to 9 cells of each map, float64 ``(C,)``.
        strongest: share of the images for which the channel's largest value is the layer's, float64
            ``(C,)``.
        not_finite: how many values were NaN or infinite, int64 ``(C,)``.
        histogram: counts of the values of those cells, uint32 ``(C, bins)``.
        class_maximum: as `mean_maximum` for the images of each class, float32 ``(classes, C)``.
        widths: of the bins of each channel, float64 ``(C,)``; as many are below 0 as above.
    """

    mean: NDArray[np.float64]
    mean_maximum: NDArray[np.float64]
    zeros: NDArray[np.float64]
    strongest: NDArray[np.float64]
    not_finite: NDArray[np.int64]
    histogram: NDArray[np.uint32]
    class_maximum: NDArray[np.float32]
    widths: NDArray[np.float64]

    def edges(self, channel: int) -> NDArray[np.float64]:
        """Return the edges of a channel's histogram bins, ``(bins + 1,)``."""
        of_channel: NDArray[np.float64] = edges(0) * self.widths[channel]
        return of_channel


@dataclass(frozen=True, slots=True)
class AtlasChannel:
    """Channel that answers to a class or an image.

    Attributes:
        layer: its written address.
        channel: its number.
        rank: of the image among the channel's strongest, from 0; for a class of the first that is
            of it.
        share: for a class, the share of the channel's strongest images that are of it; for an image
            1.0.
        value: the activation that the rank is of.
        contrast: for a class, how far its mean maximum is above that of all images, as a share of
            the spread of the classes' (a z-score); 0.0 for an image.
    """

    layer: str
    channel: int
    rank: int
    share: float
    value: float
    contrast: float = 0.0


@dataclass(frozen=True, eq=False)
class Atlas:
    """Max-activating examples of each channel of a model, read by `load_atlas`.

    These are dataset examples, the images to which each channel answers most, and not the
    activation atlas of Carter et al. (2019), which lays out visualised averages of activations.

    Attributes:
        path: the folder ``NAME.atlas``; a made-up name where it is in memory alone.
        model: the model's catalog name.
        title: how to show the model.
        weights: ``"pretrained"``, ``"random"`` or a file's name.
        digest: of the model.
        top: how many images are kept of each channel at most.
        layers: how many channels each layer has, by written address, in order of execution.
        of_cells: those of them behind attention, each of whose patches is its cell's own place on
            the image; the cell itself sees more, up to all of it.
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
    of_cells: frozenset[str] = field(repr=False)
    images: tuple[AtlasImage, ...] = field(repr=False)
    classes: Mapping[str, int]
    counts: Mapping[str, int]
    left_out: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    _numbers: Mapping[str, NDArray[Any]] = field(repr=False)
    _patches: Path | bytes = field(repr=False)

    def top_activations(self, layer: str, channel: int) -> tuple[TopActivation, ...]:
        """Return the images that excite a channel most, strongest first.

        Raises:
            UnknownLayerError: the atlas has no such layer.
            SettingError: the layer has no such channel.
            HookVizError: the patches can't be read any more.
        """
        row = self._row(layer, channel)
        ranks = np.flatnonzero(self._numbers["image"][row] >= 0).tolist()
        patches = self._read_patches(self._numbers["patch"][row, ranks].tolist())
        return tuple(
            self._top_activation(row, rank, patch)
            for rank, patch in zip(ranks, patches, strict=True)
        )

    excites = RenamedAttribute("top_activations")

    def first_patches(self, layer: str) -> tuple[Pixels | None, ...]:
        """Return the strongest image's patch for each channel of a layer; None where there is none.

        Raises:
            UnknownLayerError: the atlas has no such layer.
            HookVizError: the patches can't be read any more.
        """
        return self._read_patches(self._numbers["patch"][self._rows(layer), 0].tolist())

    def statistics(self, layer: str) -> LayerStatistics:
        """Return statistics of what a layer's channels put out over all images.

        Raises:
            UnknownLayerError: the atlas has no such layer.
        """
        numbers, rows = self._numbers, self._rows(layer)
        return LayerStatistics(
            mean=numbers["mean"][rows],
            mean_maximum=numbers["mean_maximum"][rows],
            zeros=numbers["zeros"][rows],
            strongest=numbers["strongest"][rows] / max(1, self.counts["tallied"]),
            not_finite=numbers["not_finite"][rows],
            histogram=numbers["histogram"][rows],
            class_maximum=numbers["class_maximum"][:, rows],
            widths=np.ldexp(1.0, numbers["exponent"][rows].astype(np.int32)),
        )

    def channels_of_class(self, name: str, count: int = 20) -> tuple[AtlasChannel, ...]:
        """Return the channels that answer most to a class.

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
        is_filled = entries >= 0
        of_class = is_filled & is_of[entries]
        shares = of_class.sum(axis=1) / np.maximum(is_filled.sum(axis=1), 1)
        maxima = self._numbers["class_maximum"].astype(np.float64)
        spread = maxima.std(axis=0)
        above = maxima[number] - maxima.mean(axis=0)
        contrast = np.divide(above, spread, out=np.zeros_like(spread), where=spread > 0)
        order = np.lexsort((-contrast, -shares))
        rows = [row for row in order[: max(0, count)].tolist() if of_class[row].any()]
        return tuple(
            self._answer(row, int(of_class[row].argmax()), float(shares[row]), float(contrast[row]))
            for row in rows
        )

    def channels_of_image(self, image: str, count: int = 20) -> tuple[AtlasChannel, ...]:
        """Return the channels with an image among their strongest, best rank of it first.

        Of equal ranks, those come first for which it stands out most: by how far its value is above
        the channel's mean maximum, as a share of it.

        Args:
            image: its name, or its digest.
            count: how many at most.

        Raises:
            UnknownNameError: no channel has such an image among its strongest.
        """
        keys = [(each.name, each.digest) for each in self.images]
        indices = [index for index, each in enumerate(keys) if image in each]
        if not indices:
            names = [entry.name for entry in self.images]
            raise UnknownNameError(say("image among the strongest of any channel"), image, names)
        rows, ranks = np.nonzero(np.isin(self._numbers["image"], indices))
        usual = self._numbers["mean_maximum"][rows]
        ahead = (self._numbers["value"][rows, ranks] - usual) / np.maximum(np.abs(usual), 1e-12)
        order = np.lexsort((-ahead, ranks))[: max(0, count)]
        return tuple(self._answer(int(rows[at]), int(ranks[at]), 1.0, 0.0) for at in order)

    def belongs_to(self, model: Model | nn.Module) -> bool:
        """Return whether it was made with this very network, and inputs made in the same way."""
        model = as_model(model)
        is_same = model.made(self.digest, self.model, self.weights)
        return is_same and self.options["preprocess"] == steps(model)

    def check(self, model: Model | nn.Module) -> None:
        """Check that it belongs to a model.

        Raises:
            HookVizError: it was made with other weights, or other inputs.
        """
        model = as_model(model)
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
            if not model.made(self.digest, self.model, self.weights)
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
        """Return the file of an image, or None where it is not there.

        The atlas may come from anybody: a file outside of the folder that the atlas lies in is
        never returned, whatever path it says and whichever links lead there.
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
        """Describe as plain data what it is of and how it was made."""
        return {
            "model": self.model,
            "digest": self.digest,
            "images": self.counts["images"],
            "top": self.top,
            "layers": list(self.layers),
            **self.options,
        }

    @cached_property
    def _first_rows(self) -> dict[str, int]:
        """Row of each layer's first channel among all channels."""
        ends = np.cumsum([0, *self.layers.values()])
        return dict(zip(self.layers, ends[:-1].tolist(), strict=True))

    def _rows(self, layer: str) -> slice:
        if layer not in self.layers:
            raise UnknownLayerError(say("layer in the atlas"), layer, self.layers)
        return slice(self._first_rows[layer], self._first_rows[layer] + self.layers[layer])

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

    def _top_activation(self, row: int, rank: int, patch: Pixels | None) -> TopActivation:
        numbers = self._numbers
        number = int(numbers["patch"][row, rank])
        box = tuple(numbers["patch_box"][number].tolist()) if number >= 0 else None
        cell = numbers["cell"][row, rank].tolist()
        return TopActivation(
            image=self.images[numbers["image"][row, rank]],
            value=float(numbers["value"][row, rank]),
            cell=(cell[0], cell[1]),
            box=box,
            patch=patch,
        )

    def _answer(self, row: int, rank: int, share: float, contrast: float) -> AtlasChannel:
        layer = next(name for name, first in reversed(self._first_rows.items()) if first <= row)
        value = float(self._numbers["value"][row, rank])
        return AtlasChannel(layer, row - self._first_rows[layer], rank, share, value, contrast)

    def _read_patches(self, numbers: Sequence[int]) -> tuple[Pixels | None, ...]:
        """Read the patches of these numbers; None for -1."""
        starts, side = self._numbers["patch_start"], int(self.options["patch"])
        patches: list[Pixels | None] = []
        try:
            with self._open_patches() as file:
                for number in numbers:
                    if number < 0:
                        patches.append(None)
                        continue
                    file.seek(int(starts[number]))
                    data = file.read(int(starts[number + 1] - starts[number]))
                    name = say("Patch {number} of {path!r}", number=number, path=self.path.name)
                    patches.append(decode_patch(data, side, name))
        except OSError as error:
            raise HookVizError(
                say(
                    "The patches of {path!r} can't be read: {reason}.",
                    path=self.path.name,
                    reason=error.strerror or error,
                )
            ) from error
        return tuple(patches)

    def _open_patches(self) -> BinaryIO:
        if isinstance(self._patches, bytes):
            return io.BytesIO(self._patches)
        return self._patches.open("rb")
