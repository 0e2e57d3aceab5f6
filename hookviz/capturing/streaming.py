"""Capture any number of images with bounded memory: one after another, or to files on a disk.

1. Name the images as they come, and divide them into shards of `batch_size`.
2. Capture a shard in one pass; where that fails, image by image, so that one alone is left out.
3. Yield each capture, or what a function makes of it; or write the shard to a file of its own.

`capture_batch` and `capture_each` are old names of `capture` and `stream`; they go in HookViz 2.0.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn

from hookviz.capturing.batch import capture_images
from hookviz.capturing.batch_images import Images, image_count, name_images
from hookviz.capturing.engine import capture
from hookviz.capturing.feature_vectors import POOLS, vector
from hookviz.capturing.image_shards import ImageShard, image_shards, needs_of
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.storage import Storage
from hookviz.capturing.stored_activations import ShardWriter, StoredActivations
from hookviz.deprecated import warn_renamed
from hookviz.engines.engine import LOCAL, Engine, Needs, ReportImages, engine_of
from hookviz.errors import HookVizError, ImageError, SettingError, UnknownNameError, one_of
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.selection import Layers, select, several
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import Capture, Model, ModelInput, Progress, ignore

BATCH_SIZE = 32


@overload
def stream(
    model: Model | nn.Module,
    images: Images,
    layers: Layers = None,
    then: Callable[[Capture], Any] | None = None,
    *,
    to: None = None,
    pool: str | None = None,
    dtype: torch.dtype | str | None = None,
    batch_size: int = BATCH_SIZE,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    engine: str | Engine = LOCAL,
    progress: Progress = ignore,
) -> Generator[tuple[str, Any], None, None]: ...


@overload
def stream(
    model: Model | nn.Module,
    images: Images,
    layers: Layers = None,
    *,
    to: str | os.PathLike[str],
    pool: str | None = None,
    dtype: torch.dtype | str | None = None,
    batch_size: int = BATCH_SIZE,
    size: int | None = None,
    whole: bool = False,
    engine: str | Engine = LOCAL,
    progress: Progress = ignore,
) -> StoredActivations: ...


def stream(
    model: Model | nn.Module,
    images: Images,
    layers: Layers = None,
    then: Callable[[Capture], Any] | None = None,
    *,
    to: str | os.PathLike[str] | None = None,
    pool: str | None = None,
    dtype: torch.dtype | str | None = None,
    batch_size: int = BATCH_SIZE,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    engine: str | Engine = LOCAL,
    progress: Progress = ignore,
) -> Generator[tuple[str, Any], None, None] | StoredActivations:
    """Capture any number of images with bounded memory, one after another or to a folder.

    Images are captured `batch_size` at a time where they make inputs of one size. A generator or a
    loader is gone through once, as far as it is needed. Without `to` you get an iterator of pairs:
    each image's name with its `Capture`, or with what `then` returns, or with a `HookVizError`
    where the image can't be read or the network can't take it.

    With `to` the activations go into a folder, a shard of `batch_size` images after another,
    and you get `StoredActivations`, which read them back lazily. What a killed run has written
    stays: the same call goes on behind it and leaves the same bytes. An image that fails is left
    out and told in ``failed``.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        images: anything that `capture` takes for several images, such as a folder or a loader; as
            a mapping where they have names.
        layers: as of `capture`.
        then: what is made of each capture where it is made, so that the activations need not come
            from a worker's machine to this one; it is sent there. Not with `to`.
        to: a folder for the activations, which is made: of safetensors, or with a name such as
            ``maps.zarr`` a Zarr group (``pip install zarr``) with an array ``(N, …)`` a layer.
        pool: ``"mean"`` or ``"flat"`` to keep one vector an image and layer; for `to`.
        dtype: as of `capture`; half of the disk holds ``torch.float16``.
        batch_size: how many images go through the network together; 1 for the very numbers of
            single passes.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        logits: keep the networks' outputs for `Capture.predictions`.
        engine: what goes through the images: ``"local"``, ``"ray"`` or ``"ray://HOST:PORT"``, as
            docs/scaling.md says.
        progress: called with the share done where the number of images is known; what it raises
            ends the run.

    Raises:
        UnknownLayerError: the model has no such layer.
        SettingError: an option has a value that means nothing, or the folder holds another run.

    >>> model = hookviz.load_model("shapesnet")
    >>> paths = ["assets/samples/cat.jpg", "assets/samples/dots.jpg"]
    >>> [name for name, cap in hookviz.stream(model, paths, "stem.first.conv")]
    ['cat.jpg', 'dots.jpg']
    >>> import tempfile
    >>> stored = hookviz.stream(model, paths, "stage1", to=tempfile.mkdtemp(), pool="mean")
    >>> stored["stage1"].shape, stored["stage1"][0].shape, stored.names
    ((2, 48), torch.Size([48]), ('cat.jpg', 'dots.jpg'))
    """
    model = as_model(model)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise SettingError(
            say("batch_size={size!r} is no whole number above 0, such as 32.", size=batch_size)
        )
    storage = Storage(dtype=dtype)
    chosen = layers if layers is None else several(layers)
    named: Iterable[tuple[str, Any]] = name_images(model, images)
    needs = Needs()
    if engine != LOCAL:
        named = list(named)
        needs = needs_of([model], [image for _, image in named])
    total, writer = image_count(model, images), None

    def tell(done: float, _left_out: int) -> None:
        if total:
            before = writer.images_before if writer else 0
            progress(min(1.0, (before + done) / total))

    if to is None:
        if pool is not None:
            raise SettingError(say("pool= is for to=; vectors are made by extract_features."))
        work = CaptureWork(model, chosen, then, size, whole, logits, needs, storage)
        shards = image_shards(named, batch_size)
        return _each(engine_of(engine)(work, shards, tell))
    if then is not None:
        raise SettingError(say("then= makes something of captures that to= does not keep."))
    if pool is not None:
        one_of(say("pool"), pool, POOLS)
    names = [each if isinstance(each, str) else select(model, each) for each in chosen or ()]
    options: dict[str, Any] = {"layers": names, "size": size, "whole": whole, "pool": pool}
    options |= {"dtype": str(dtype), "batch_size": batch_size}
    writer = ShardWriter(path_of(to), model, options)
    shards = writer.missing(image_shards(named, batch_size))  # counts those before it
    work = CaptureWork(
        model, chosen, _Parts(pool), size, whole, logits=False, needs=needs, storage=storage
    )
    outcomes = engine_of(engine)(work, shards, tell)
    with closing(outcomes):
        for outcome in outcomes:
            writer.write(outcome)
    tell(total, 0)  # the last shards may have been there
    return writer.finish()


def _each(
    shards: Generator[list[tuple[str, Any]], None, None],
) -> Generator[tuple[str, Any], None, None]:
    with closing(shards):
        for outcomes in shards:
            yield from outcomes


@dataclass(frozen=True, slots=True)
class _Parts:
    """Picklable function from a capture to its tensors by address, pooled where asked."""

    pool: str | None

    def __call__(self, cap: Capture) -> dict[str, Tensor]:
        if self.pool is None:
            return {address: part.raw for address, part in cap.items()}
        return {address: torch.from_numpy(vector(part, self.pool)) for address, part in cap.items()}


@dataclass(frozen=True, eq=False, slots=True)
class CaptureWork:
    """Worker that captures the images of a shard, and applies a function to each capture.

    Attributes:
        model: from `load_model` or `wrap`.
        layers: as of `capture`.
        then: what is made of a capture; None for itself.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        logits: keep the network's output.
        needs: what it needs where it runs.
        storage: how activations are kept.
    """

    model: Model
    layers: Layers
    then: Callable[[Capture], Any] | None
    size: int | None
    whole: bool
    logits: bool
    needs: Needs
    storage: Storage

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(self, shard: ImageShard, report: ReportImages) -> list[tuple[str, Any]]:
        """Return each image's name with the function's result, or why there is none."""
        count = len(shard.names)
        reporter = ProgressReporter(lambda share: report(count * share, 0), 2 * count)
        outcomes: dict[str, Any] = {}
        for name, image in zip(shard.names, shard.images, strict=True):
            outcomes[name] = _outcome(name, self._input, image)
            reporter.step()
        inputs = {name: each for name, each in outcomes.items() if isinstance(each, ModelInput)}
        together = self._together(list(inputs.values()))
        for name, model_input in inputs.items():
            outcomes[name] = _outcome(name, self._made, model_input, next(together, None))
            reporter.step()
        return list(outcomes.items())

    def _input(self, image: Any) -> ModelInput:
        return prepare_input(self.model, image, size=self.size, whole=self.whole)

    def _together(self, inputs: list[ModelInput]) -> Iterator[Capture]:
        """Capture all in one pass; nothing where it has no part for each, or one can't go."""
        if len(inputs) < 2:
            return
        try:
            yield from capture_images(
                self.model,
                inputs,
                self.layers,
                inputs=False,
                logits=self.logits,
                progress=None,
                storage=self.storage,
                at_once=len(inputs),
            )
        except (UnknownNameError, SettingError):
            raise
        except HookVizError:  # each is tried alone
            return

    def _made(self, model_input: ModelInput, cap: Capture | None) -> Any:
        if cap is None:
            cap = capture(
                self.model, model_input, self.layers, logits=self.logits, dtype=self.storage.dtype
            )
        return cap if self.then is None else self.then(cap)


def _outcome(name: str, make: Callable[..., Any], *given: Any) -> Any:
    """Return what is made of an image, or the error that is its own."""
    try:
        return make(*given)
    except (UnknownNameError, SettingError):
        raise  # the same would happen with every image
    except HookVizError as error:
        return error
    except OSError as error:
        return ImageError(f"{name}: {error}")


def capture_batch(
    model: Model | nn.Module, images: Any, *args: Any, **kwargs: Any
) -> tuple[Capture, ...]:
    """Capture several images in one pass: the old name of `capture` with a list of them."""
    warn_renamed("hookviz.capture_batch(…)", "hookviz.capture(…)")
    single = images.get("pixel_values", [images]) if isinstance(images, dict) else images
    return tuple(capture(model, list(single), *args, **kwargs))


def capture_each(
    model: Model | nn.Module, images: Any, *args: Any, **kwargs: Any
) -> Generator[tuple[str, Any], None, None]:
    """Capture each of many images, one a pass: the old name of `stream` with ``batch_size=1``."""
    warn_renamed("hookviz.capture_each(…)", "hookviz.stream(…)")
    pairs: Generator[tuple[str, Any], None, None]
    pairs = stream(model, images, *args, batch_size=1, **kwargs)
    return pairs
