"""What two models make of the same images: the means of channels, image after image."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing import engine as capturing
from hookviz.capturing import inputs
from hookviz.capturing.features import vector
from hookviz.capturing.image_shards import ImageShard, image_shards, needs_of
from hookviz.engines.engine import Engine, Needs, ReportImages, in_this_process
from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images import reading
from hookviz.types import Model, ModelInput, Progress

_SHARD = 16  # images that a worker of an engine takes at once

Means = Mapping[str, NDArray[np.float32]]
"""By written address: of one image, ``(C,)``; of all that went through, ``(N, C)``."""


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """One of two models, and which of its layers are looked at.

    Attributes:
        model: from `load_model` or `wrap`.
        layers: their names; None for every conv layer.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
    """

    model: Model
    layers: tuple[str, ...] | None
    size: int | None
    whole: bool


@dataclass(frozen=True, eq=False, slots=True)
class BothMeans:
    """The means of both models' channels over the maps, a row an image.

    Attributes:
        a, b: float32 ``(N, C)`` by written address, in order of execution.
        names: of the images that went through both, ``(N,)``.
        failed: why images were left out, by their names.
    """

    a: Means
    b: Means
    names: tuple[str, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True, eq=False, slots=True)
class MeansWork:
    """Makes the means of both models' channels of each image of a shard, or says why not.

    Attributes:
        a: one model; `b` may be the same object, and then an image goes through once.
        b: another one.
        needs: what it needs where it runs.
    """

    a: Side
    b: Side
    needs: Needs = field(default_factory=Needs)

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """What the images of a shard are called."""
        return shard.names

    def __call__(
        self, shard: ImageShard, report: ReportImages
    ) -> dict[str, tuple[Means, Means] | HookVizError]:
        """The means of each image, by its name."""
        count, left_out = len(shard.names), 0
        reporter = ProgressReporter(lambda share: report(count * share, left_out), count)
        found: dict[str, tuple[Means, Means] | HookVizError] = {}
        for name, image in zip(shard.names, shard.images, strict=True):
            try:
                found[name] = _of_both(self.a, self.b, image, reporter)
            except (UnknownNameError, SettingError):
                raise  # the same would happen with every image
            except HookVizError as error:
                if reporter.was_ended_by(error):
                    raise
                found[name] = error
                left_out += 1
            reporter.step()
        return found


def channel_means(
    a: Side,
    b: Side,
    images: Mapping[str, Any],
    progress: Progress,
    engine: Engine = in_this_process,
) -> BothMeans:
    """The means of all channels over their maps, of both models for each image.

    One image goes through at a time, and nothing but its means is kept. One that can't be read,
    that a model can't take, that gives NaN or runs other layers than the images before it is left
    out of both.

    Args:
        a: one model; `b` may be the same object, and then an image goes through once.
        b: another one.
        images: anything that `capture` takes, by name.
        progress: told the share done; what it raises ends the run.
        engine: what goes through the images.

    Raises:
        HookVizError: no image went through.
        UnknownLayerError: a model has no such layer.
        SettingError: an option has a value that means nothing.
    """
    rows: list[tuple[Means, Means]] = []
    names: list[str] = []
    failed: dict[str, HookVizError] = {}

    def tell(done: float, _left_out: int) -> None:
        progress(min(1.0, done / len(images)))

    work = MeansWork(a, b, needs_of([a.model, b.model], images.values()))
    for shard in engine(work, image_shards(images, _SHARD), tell):
        for name, means in shard.items():
            try:
                if isinstance(means, HookVizError):
                    raise means
                if rows:
                    _check_alike(means, rows[0])
            except HookVizError as error:
                failed[name] = error
            else:
                rows.append(means)
                names.append(name)
    if not rows:
        name, reason = next(iter(failed.items()))
        if len(failed) == 1:
            raise reason
        raise HookVizError(f"No image went through. {shorten(name)}: {reason}") from reason
    first = _stacked([means[0] for means in rows])
    second = first if a is b else _stacked([means[1] for means in rows])
    told = {name: str(error) for name, error in failed.items()}
    return BothMeans(first, second, tuple(names), told)


def _of_both(a: Side, b: Side, image: Any, reporter: ProgressReporter) -> tuple[Means, Means]:
    read = image
    if not isinstance(image, Tensor | ModelInput):
        read = reading.read(image)  # once for both
    if a is b:
        means = _of_one(a, read, reporter.within)
        return means, means
    first = _of_one(a, read, lambda share: reporter.within(share / 2))
    return first, _of_one(b, read, lambda share: reporter.within((1 + share) / 2))


def _of_one(side: Side, image: Any, progress: Progress) -> Means:
    """The means of all channels that are looked at, ``(C,)`` for each written address."""
    taken = inputs.prepare(side.model, image, size=side.size, whole=side.whole)
    capture = capturing.capture(side.model, taken, side.layers, logits=False, progress=progress)
    modules = dict(side.model.network.named_modules(remove_duplicate=False))
    ratio = taken.tensor.shape[-2] / taken.tensor.shape[-1]
    means = {}
    for address, activation in capture.items():
        found = vector(activation, modules[activation.layer], ratio)
        if np.iscomplexobj(found) or not np.isfinite(found).all():
            kind = "complex numbers" if np.iscomplexobj(found) else "NaN or infinite values"
            raise HookVizError(f"{address} of {side.model.title} puts out {kind} for it.")
        means[address] = found
    if not means:
        raise HookVizError(
            f"{side.model.title} has no conv layer to look at; name others, as list_layers(model, "
            "kind='all') lists them."
        )
    return means


def _check_alike(means: tuple[Means, Means], first: tuple[Means, Means]) -> None:
    """Refuse an image for which a model runs something else than for the first."""
    for these, those in zip(means, first, strict=True):
        sizes, before = ({at: len(row) for at, row in each.items()} for each in (these, those))
        if sizes != before:
            at = next(each for each in {**before, **sizes} if sizes.get(each) != before.get(each))
            raise HookVizError(
                f"{at} has {sizes.get(at, 0):,} channels for it and {before.get(at, 0):,} for the "
                "first image: the network takes another way."
            )


def _stacked(rows: Sequence[Means]) -> Means:
    stacked = {address: np.stack([row[address] for row in rows]) for address in rows[0]}
    for each in stacked.values():
        each.setflags(write=False)
    return stacked
