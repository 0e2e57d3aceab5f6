"""Capture many images one by one, in this process or by workers, and apply a function to each."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from torch import nn

from hookviz.capturing.engine import capture
from hookviz.capturing.features import named
from hookviz.capturing.image_shards import ImageShard, image_shards, needs_of
from hookviz.engines.choosing import engine_of
from hookviz.engines.engine import Engine, Needs, ReportImages
from hookviz.errors import HookVizError, ImageError, SettingError, UnknownNameError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.models.wrapping import as_model
from hookviz.types import Capture, Model, Progress, ignore


def capture_each(
    model: Model | nn.Module,
    images: Mapping[str, Any] | Iterable[Any],
    layers: str | Iterable[str] | None = None,
    then: Callable[[Capture], Any] | None = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    engine: str | Engine = "local",
    progress: Progress = ignore,
) -> Generator[tuple[str, Any], None, None]:
    """Capture each of many images, one after another, or apply a function to each capture.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        images: anything that `capture` takes, several of it; as a mapping where they have names.
        layers: a layer's name, several, or None for every conv layer.
        then: what is made of each capture where it is made, so that the activations need not come
            from a worker's machine to this one; it is sent there.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        logits: keep the networks' outputs for `Capture.predictions`.
        engine: what goes through the images: ``"local"``, ``"ray"`` or ``"ray://HOST:PORT"``, as
            docs/scaling.md says.
        progress: called with the share done; what it raises ends the run.

    Yields:
        Each image's name with its `Capture`, or with what `then` returns; with a `HookVizError`
        where the image can't be read, or the network can't take it.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        SettingError: an option has a value that means nothing.

    >>> model = hookviz.load_model("shapesnet")
    >>> paths = ["assets/samples/cat.jpg", "assets/samples/dots.jpg"]
    >>> largest = lambda cap: round(float(cap["stem.first.conv"].values.max()), 1)
    >>> [name for name, found in hookviz.capture_each(model, paths, "stem.first.conv", largest)]
    ['cat.jpg', 'dots.jpg']
    """
    model = as_model(model)
    listed = dict(images) if isinstance(images, Mapping) else named(images)
    wanted = layers if layers is None or isinstance(layers, str) else tuple(layers)
    needs = needs_of([model], listed.values())
    work = CaptureWork(model, wanted, then, size, whole, logits, needs)

    def tell(done: float, _left_out: int) -> None:
        progress(min(1.0, done / len(listed)))

    outcomes = engine_of(engine)(work, image_shards(listed, 1), tell)
    with closing(outcomes):
        yield from outcomes


@dataclass(frozen=True, eq=False, slots=True)
class CaptureWork:
    """Worker that captures the one image of a shard, and applies a function to the capture.

    Attributes:
        model: from `load_model` or `wrap`.
        layers: a layer's name, several, or None for every conv layer.
        then: what is made of the capture; None for itself.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        logits: keep the network's output.
        needs: what it needs where it runs.
    """

    model: Model
    layers: str | tuple[str, ...] | None
    then: Callable[[Capture], Any] | None
    size: int | None
    whole: bool
    logits: bool
    needs: Needs

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(self, shard: ImageShard, report: ReportImages) -> tuple[str, Any]:
        """Return the image's name, and the function's result, or why there is none."""
        [name], [image] = shard.names, shard.images
        reporter = ProgressReporter(lambda share: report(share, 0))
        try:
            cap = capture(
                self.model,
                image,
                self.layers,
                size=self.size,
                whole=self.whole,
                logits=self.logits,
                progress=reporter.within,
            )
            outcome = cap if self.then is None else self.then(cap)
        except (UnknownNameError, SettingError):
            raise  # the same would happen with every image
        except (HookVizError, OSError) as error:
            if reporter.was_ended_by(error):
                raise
            outcome = error if isinstance(error, HookVizError) else ImageError(f"{name}: {error}")
        reporter.step()
        return name, outcome
