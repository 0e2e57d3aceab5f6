"""Capture several images in one pass, with a `Capture` for each of them."""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.engine import answer_for, maker_of
from hookviz.capturing.image_axis import parts_by_image
from hookviz.capturing.inputs import prepare
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.recorded_pass import Recording, in_order, run, wanted_layers, without_batch
from hookviz.errors import ImageError, ModelError
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say, sentences
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import Scores
from hookviz.types import Activation, Address, Capture, Model, ModelInput, Progress
from hookviz.wording import times


@with_numbers
def capture_batch(
    model: Model | nn.Module,
    images: Tensor | NDArray[Any] | Sequence[Any] | Mapping[str, Any],
    layers: str | Iterable[str] | None = None,
    *,
    size: int | None = None,
    inputs: bool = False,
    progress: Progress | None = None,
) -> tuple[Capture, ...]:
    """Capture several images in one pass: what the named layers put out for each of them.

    One pass, in which the network sees them as one batch, and one `Capture` an image, as `capture`
    gives it; numbers can differ from those of single passes by rounding, and more where a network
    takes some of them over its batch. The last image goes through by itself as well, which tells
    where in each tensor the images are: first, second as in ``(L, N, C)``, or several windows of
    each. A position code that is the same for all is in every capture.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        images: several of what `prepare` takes, a float tensor or array of ``(N, C, H, W)``,
            pictures of ``(N, H, W, 3)``, or what a Hugging Face processor makes of several.
        layers: a layer's name, several, or None for every conv layer.
        size: side of the inputs in pixels, in place of the model's own.
        inputs: keep what the layers are given as well, for `Capture.inputs`.
        progress: called with the share done after every layer; what it raises ends the run.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ImageError: there is no image, one can't be read, or they make inputs of several sizes.
        ModelError: the network can't take them, or a layer doesn't put out a part for each image.

    >>> model = hookviz.load_model("shapesnet")
    >>> caps = hookviz.capture_batch(model, torch.rand(4, 3, 64, 64))  # (N, C, H, W)
    >>> len(caps), caps[3]["stem.first.conv"].values.shape  # (C, H, W)
    (4, torch.Size([32, 32, 32]))
    """
    started = time.perf_counter()
    model = as_model(model)
    if isinstance(images, Mapping):
        images = images.get("pixel_values", [images])
    model_inputs = [prepare(model, image, size=size) for image in images]
    shapes = {tuple(each.tensor.shape) for each in model_inputs}
    if len(shapes) != 1:
        raise ImageError(
            say(
                "The images make inputs of {shapes}; in one pass all have to be of one size.",
                shapes=" and ".join(map(times, sorted(shapes))),
            )
            if model_inputs
            else say("There is no image in the batch; give one or more.")
        )
    batch = ModelInput(
        torch.cat([each.tensor for each in model_inputs]),
        None,
        None,
        hashlib.sha256("".join(each.digest for each in model_inputs).encode()).hexdigest(),
    )
    seen = input_trace(model, batch)
    wanted = wanted_layers(model, seen, layers)
    passes = _Passes(model, batch, seen, wanted, inputs=inputs, progress=progress)
    activations = passes.by_image(
        part for name in wanted for part in passes.recording.by_layer[name]
    )
    taken = passes.by_image(passes.recording.inputs, of_inputs=True)
    scores = passes.scores
    seconds = time.perf_counter() - started
    return tuple(
        Capture(
            model=model.name,
            digest=model.cache_key,
            weights=model.weights,
            model_input=each,
            activations=in_order(seen, activations[number]),
            answer=answer_for(model, scores, number),
            categories=model.categories,
            seconds=seconds,
            forward_passes=passes.count,
            layer_inputs=in_order(seen, taken[number]),
            made_by=maker_of(model),
            note=sentences(model.note, each.note),
            unanswered=passes.recording.unanswered,
        )
        for number, each in enumerate(model_inputs)
    )


class _Passes:
    """The pass over the batch, and further ones over other numbers of its images.

    Attributes:
        recording: what the batch gave.
        count: how many passes there were.
    """

    def __init__(
        self,
        model: Model,
        batch: ModelInput,
        seen: LayerTrace,
        wanted: tuple[str, ...],
        *,
        inputs: bool,
        progress: Progress | None,
    ) -> None:
        self.count = 0
        self._model, self._batch, self._seen, self._wanted = model, batch, seen, wanted
        self._inputs = inputs
        self._reporter = ProgressReporter(progress)
        self._told = progress is not None
        self._images = images = len(batch.tensor)
        self.recording = self._over(batch.tensor, 0, images / (images + (images > 1)))
        self._others, self._beside = self._of_another_size() if images > 1 else (1, self.recording)

    @property
    def scores(self) -> Scores | None:
        """Class scores, ``(N, classes)``; None where the network puts out something else."""
        scores = self.recording.scores
        beside = None if self._beside is None else self._beside.scores
        if scores is None or beside is None:
            return None
        return scores if scores.values.shape[1] == beside.values.shape[1] else None

    def by_image(
        self, parts: Iterable[Activation], *, of_inputs: bool = False
    ) -> list[list[Activation]]:
        """Return for each image its own part of what the layers put out, or were given.

        Raises:
            ModelError: something has no part for each.
        """
        listed: list[list[Activation]] = [[] for _ in range(self._images)]
        for part in parts:
            for own, values in zip(listed, self._taken_apart(part, of_inputs), strict=True):
                kept = without_batch(values).clone(memory_format=torch.contiguous_format)
                own.append(replace(part, raw=kept, layout=part.layout.of(tuple(kept.shape))))
        return listed

    def _over(self, images: Tensor, begun: float, done: float = 1.0) -> Recording:
        """Run a pass over the inputs, which takes the progress from `begun` to `done`."""
        self.count += 1
        return run(
            *(self._model, replace(self._batch, tensor=images), self._seen, self._wanted),
            stop_early=False,
            progress=partial(self._tell, begun, done) if self._told else None,
            inputs=self._inputs,
            whole=True,
        )

    def _tell(self, begun: float, done: float, share: float) -> None:
        self._reporter.share(begun + share * (done - begun))

    def _of_another_size(self) -> tuple[int, Recording | None]:
        """Return what a pass over fewer or more images recorded, and how many they were.

        That one, or for a network that takes no single image, one more or as many again.
        """
        images, last = self._batch.tensor, self._batch.tensor[-1:]
        for other in (last, torch.cat([images, last]), torch.cat([images, last.expand_as(images)])):
            try:
                return len(other), self._over(other, len(images) / (len(images) + 1))
            except ModelError as error:
                if self._reporter.was_ended_by(error):
                    raise
        return 0, None

    def _taken_apart(self, part: Activation, of_inputs: bool) -> Sequence[Tensor]:
        if self._images == 1:
            return (part.raw,)
        beside = _at(self._beside, part.address, of_inputs)
        own = None
        if beside is not None:
            own = parts_by_image(part.raw, self._images, beside, self._others)
            if own is None and self._is_for_all(part, beside, of_inputs):
                own = (part.raw,) * self._images
        if own is None:
            raise ModelError(
                say(
                    "{address} has {shape} for {images} images together, and so no part for "
                    "each. Capture them one by one.",
                    address=part.address,
                    shape=times(part.raw.shape) or say("one number"),
                    images=self._images,
                )
            )
        return own

    def _is_for_all(self, part: Activation, beside: Tensor, of_inputs: bool) -> bool:
        """Return whether a tensor is the same whatever the images are, and however many."""
        if not _are_equal(part.raw, beside):
            return False
        if self._elsewhere is None:
            return False
        elsewhere = _at(self._elsewhere, part.address, of_inputs)
        return elsewhere is not None and _are_equal(elsewhere, beside)

    @cached_property
    def _elsewhere(self) -> Recording | None:
        """What a pass over other images recorded, which tells a statistic of the batch apart."""
        other = self._batch.tensor[:1].repeat(self._others, *(1,) * (self._batch.tensor.ndim - 1))
        try:
            return self._over(other / 2, 1.0)
        except ModelError as error:
            if self._reporter.was_ended_by(error):
                raise
            return None


def _at(recording: Recording | None, address: Address, of_inputs: bool) -> Tensor | None:
    """Return what a pass recorded at an address; None where it did not come there."""
    if recording is None:
        return None
    parts = recording.inputs if of_inputs else recording.by_layer[address.layer]
    return next((part.raw for part in parts if part.address == address), None)


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
