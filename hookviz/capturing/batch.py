"""Capture several images in one pass, and divide the layers' outputs by image.

1. Run one pass over all images. Where the trace knows a layer's maps, their first axis counts the
   images.
2. For any other output, run the last image alone as well. The axis that grows with the batch counts
   the images: the first, the second as in ``(L, N, C)``, or windows of each image.
3. An output that does not grow belongs to all images, such as a position code, if other images give
   the same.

Two sizes are compared because one is ambiguous: where L is N, or windows of several images.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, islice
from typing import Any, overload

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.recorded_pass import (
    Recording,
    answer_for,
    check_labels,
    maker_of,
    run,
    without_batch,
)
from hookviz.capturing.storage import Storage
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.errors import HookVizError, ImageError, ModelError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.selection import Layers
from hookviz.language.saying import say, sentences
from hookviz.outputs.answer import Scores
from hookviz.types import (
    FIRST,
    LAST,
    TOKENS,
    UNKNOWN,
    WINDOWS,
    Activation,
    ActivationKey,
    Capture,
    Layout,
    MissingAddressError,
    Model,
    ModelInput,
    Progress,
)
from hookviz.wording import times


@dataclass(frozen=True, eq=False, slots=True)
class BatchActivation:
    """What one call of one layer put out for several images.

    Attributes:
        address: the layer, the call and the part of the output.
        raw: as the layer put it out, images first, ``(N, …)``.
        layout: how the part of one image lies.
    """

    address: ActivationKey
    raw: Tensor = field(repr=False)
    layout: Layout = UNKNOWN

    @property
    def values(self) -> Tensor:
        """The maps, ``(N, C, H, W)``; `raw` where rows and columns are not known."""
        raw = self.raw.flatten(0, 1) if self.layout.order == WINDOWS else self.raw
        return self.layout.batch_maps(raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, image: int) -> Activation:
        """Return the activation of one image, which shares the memory of all."""
        return Activation(self.address, self.raw[image], self.layout)

    def __iter__(self) -> Iterator[Activation]:
        return (self[image] for image in range(len(self)))


Parts = Mapping[ActivationKey, tuple[Layout, Tensor | tuple[Tensor, ...]]]
"""By address how one image's part lies, and the parts: rows of a tensor, or tensors."""


@dataclass(frozen=True, eq=False, slots=True)
class ImagesOfPass:
    """What one pass over several images recorded, taken apart by image.

    Attributes:
        captures: the `Capture` of each image, without its activations.
        activations: what the layers put out, in order of execution.
        layer_inputs: what they were given.
    """

    captures: tuple[Capture, ...]
    activations: Parts
    layer_inputs: Parts

    def capture(self, image: int) -> Capture:
        """Return the capture of one image, with memory of its own."""
        return replace(
            self.captures[image],
            activations=_of_image(self.activations, image),
            layer_inputs=_of_image(self.layer_inputs, image),
        )


def _of_image(parts: Parts, image: int) -> tuple[Activation, ...]:
    return tuple(
        Activation(address, own[image].clone(memory_format=torch.contiguous_format), layout)
        for address, (layout, own) in parts.items()
    )


class CaptureBatch(Sequence[Capture]):
    """Captures of several images, in their order.

    ``batch[2]`` is the `Capture` of the third image, with memory of its own; ``batch["conv1"]`` a
    `BatchActivation`, whose ``raw`` is what the layer put out for all, ``(N, …)``.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> batch = hookviz.capture(network, torch.rand(5, 3, 8, 8), "*")  # (N, C, H, W)
    >>> len(batch), batch.layers, batch["0"].raw.shape, batch[4]["0"].raw.shape
    (5, ('0', '1'), torch.Size([5, 4, 6, 6]), torch.Size([4, 6, 6]))
    """

    def __init__(self, passes: Sequence[ImagesOfPass]) -> None:
        self._passes = tuple(passes)
        self._places = [(own, place) for own in passes for place in range(len(own.captures))]

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"CaptureBatch({len(self)} images, layers={list(self.layers)})"

    @overload
    def __getitem__(self, index: int) -> Capture: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Capture, ...]: ...
    @overload
    def __getitem__(self, index: str) -> BatchActivation: ...
    def __getitem__(
        self, index: int | slice | str
    ) -> Capture | tuple[Capture, ...] | BatchActivation:
        """Return the capture of an image, those of several, or a layer's output for all.

        Raises:
            UnknownLayerError: nothing was recorded at that address.
            HookVizError: its parts differ in shape from image to image.
        """
        if isinstance(index, str):
            return self._of_all(index)
        if isinstance(index, slice):
            return tuple(own.capture(place) for own, place in self._places[index])
        own, place = self._places[index]
        return own.capture(place)

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Written addresses of what was recorded, in order of execution."""
        return tuple(map(str, self._passes[0].activations))

    @property
    def input(self) -> Tensor:
        """Inputs that the network saw, of one size: float32 on the CPU, ``(N, C, H, W)``."""
        return torch.cat([own.captures[place].input for own, place in self._places])

    @property
    def logits(self) -> Tensor | None:
        """Scores before any softmax, float32 on the CPU, ``(N, classes)``; None without scores."""
        rows = [own.captures[place].logits for own, place in self._places]
        known = [row for row in rows if row is not None]
        return torch.stack(known) if len(known) == len(rows) else None

    def _of_all(self, text: str) -> BatchActivation:
        known = {str(address): address for address in self._passes[0].activations}
        address = known.get(text, known.get(str(ActivationKey(text))))
        if address is None or not all(address in own.activations for own in self._passes):
            raise MissingAddressError(say("captured layer"), text, self.layers)
        each = [own.activations[address][1] for own in self._passes]
        shapes = {tuple(parts[0].shape) for parts in each}
        if len(shapes) > 1:
            raise HookVizError(
                say(
                    "{address} has {shapes} for images of different sizes, which make no one "
                    "tensor. batch[0][{name!r}] is that of one image.",
                    address=address,
                    shapes=" and ".join(map(times, sorted(shapes))),
                    name=text,
                )
            )
        stacks = [parts if isinstance(parts, Tensor) else torch.stack(parts) for parts in each]
        raw = stacks[0] if len(stacks) == 1 else torch.cat(stacks)
        return BatchActivation(address, raw, self._passes[0].activations[address][0])


AT_ONCE = 32
"""Images of a list or a dataset in one pass."""

_NEAR = 1e-3  # of the largest value: other images than the one looked for are further away


def capture_images(
    model: Model,
    images: Iterable[ModelInput],
    layers: Layers,
    *,
    inputs: bool,
    progress: Progress | None,
    storage: Storage,
    logits: bool = True,
    at_once: int = AT_ONCE,
) -> CaptureBatch:
    """Capture several inputs, in passes over those of one size that stand one after another.

    Args:
        model: whose passes.
        images: the inputs.
        layers: as of `capture`.
        inputs: keep what the layers are given as well.
        progress: called with the share done; what it raises ends the run.
        storage: where the activations are kept.
        logits: keep the network's output; without it passes end with the last wanted layer.
        at_once: the largest number of images in one pass.

    Raises:
        ImageError: there is none.
        ModelError: the network can't take them, or a layer doesn't put out a part for each image.
    """
    passes = [list(each) for each in _of_one_size(images, at_once)]
    if not passes:
        raise ImageError(say("There is no image in the batch; give one or more."))
    reporter = ProgressReporter(progress, len(passes))
    captured = []
    for own in passes:
        within = None if progress is None else reporter.within
        options: dict[str, Any] = {"inputs": inputs, "logits": logits, "storage": storage}
        captured.append(_captured(model, own, layers, progress=within, **options))
        reporter.step()
    return CaptureBatch(captured)


def _of_one_size(images: Iterable[ModelInput], at_once: int) -> Iterator[Sequence[ModelInput]]:
    for _, own in groupby(images, lambda image: tuple(image.tensor.shape)):
        while some := list(islice(own, at_once)):
            yield some


def _captured(
    model: Model,
    model_inputs: Sequence[ModelInput],
    layers: Layers,
    **options: Any,
) -> ImagesOfPass:
    """Capture inputs of one size, with the `options` of `_Passes`."""
    started = time.perf_counter()
    batch = ModelInput(
        torch.cat([each.tensor for each in model_inputs]),
        None,
        None,
        hashlib.sha256("".join(each.digest for each in model_inputs).encode()).hexdigest(),
    )
    seen = input_trace(model, batch)
    wanted = wanted_layers(model, seen, layers)
    passes = _Passes(model, batch, seen, wanted, **options)
    every = [part for name in wanted for part in passes.recording.by_layer[name]]
    activations = passes.by_image(passes.recording.in_order(seen, every))
    taken = passes.by_image(
        passes.recording.in_order(seen, passes.recording.inputs), of_inputs=True
    )
    scores = passes.scores
    check_labels(model, scores)
    seconds = time.perf_counter() - started
    digest, made_by = model.cache_key, maker_of(model)
    captures = (
        Capture(
            model=model.name,
            digest=digest,
            weights=model.weights,
            model_input=each,
            activations=(),
            answer=answer_for(model, scores, number),
            categories=model.categories,
            seconds=seconds,
            forward_passes=passes.count,
            made_by=made_by,
            note=sentences(model.note, each.note),
            unanswered=passes.recording.unanswered,
        )
        for number, each in enumerate(model_inputs)
    )
    return ImagesOfPass(tuple(captures), activations, taken)


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
        logits: bool,
        progress: Progress | None,
        storage: Storage,
    ) -> None:
        self.count = 0
        self._storage = storage
        self._model, self._batch, self._seen, self._wanted = model, batch, seen, wanted
        self._inputs, self._logits = inputs, logits
        self._reporter = ProgressReporter(progress)
        self._told = progress is not None
        self._images = images = len(batch.tensor)
        self.recording = self._over(batch.tensor, 0, images / (images + (images > 1)))

    @cached_property
    def _beside(self) -> tuple[int, Recording | None]:
        """What a pass over another number of the images recorded, and how many they were.

        It tells where in a tensor the images are.
        """
        return self._of_another_size() if self._images > 1 else (1, self.recording)

    @property
    def scores(self) -> Scores | None:
        """Class scores, ``(N, classes)``; None where the network puts out something else."""
        scores = self.recording.scores
        if scores is None or self._has_rows:
            return scores
        _, beside = self._beside
        if beside is None or beside.scores is None:
            return None
        return scores if scores.values.shape[1] == beside.scores.values.shape[1] else None

    @property
    def _has_rows(self) -> bool:
        """Whether it is known without another pass that the output has a row for each image."""
        return self._seen.keeps_batch and self._seen.is_static

    def by_image(self, parts: Iterable[Activation], *, of_inputs: bool = False) -> Parts:
        """Return for each address the parts of the images, as the layer has them for one image.

        Raises:
            ModelError: something has no part for each.
        """
        found: dict[ActivationKey, tuple[Layout, Tensor | tuple[Tensor, ...]]] = {}
        for part in parts:
            if self._are_rows(part):
                layout = part.layout.of(tuple(part.raw.shape[1:]))
                found[part.address] = layout, part.raw
                continue
            own = tuple(map(without_batch, self._taken_apart(part, of_inputs)))
            found[part.address] = part.layout.of(tuple(own[0].shape)), own
        return found

    def _are_rows(self, part: Activation) -> bool:
        """Return whether a part's layout says that its first axis is the images."""
        layout, raw = part.layout, part.raw
        is_map = layout.order in {FIRST, LAST, TOKENS} and layout.batch and raw.ndim > 2
        return is_map and len(raw) == self._images and self._has_rows

    def _over(self, images: Tensor, begun: float, done: float = 1.0) -> Recording:
        """Run a pass over the inputs, which takes the progress from `begun` to `done`."""
        self.count += 1
        return run(
            self._model,
            replace(self._batch, tensor=images),
            self._seen,
            self._wanted,
            stop_early=not self._logits,
            progress=partial(self._tell, begun, done) if self._told else None,
            inputs=self._inputs,
            whole=True,
            storage=self._storage,
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
        others, recording = self._beside
        beside = _at(recording, part.address, of_inputs)
        own = None
        if beside is not None:
            own = parts_by_image(part.raw, self._images, beside, others)
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
        other = self._batch.tensor[:1].repeat(
            self._beside[0], *(1,) * (self._batch.tensor.ndim - 1)
        )
        try:
            return self._over(other / 2, 1.0)
        except ModelError as error:
            if self._reporter.was_ended_by(error):
                raise
            return None


def _at(recording: Recording | None, address: ActivationKey, of_inputs: bool) -> Tensor | None:
    """Return what a pass recorded at an address; None where it did not come there."""
    if recording is None:
        return None
    parts = recording.inputs if of_inputs else recording.by_layer[address.layer]
    return next((part.raw for part in parts if part.address == address), None)


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def parts_by_image(
    many: Tensor, images: int, other: Tensor, others: int
) -> tuple[Tensor, ...] | None:
    """Return each image's part of what a layer put out for several; None where unknown.

    Each part is what the layer puts out for one image, with a batch of one where it has a batch.

    Args:
        many: for a batch of `images`, more than one.
        images: how many.
        other: for a batch of another size, whose last image is the last of `images`, too.
        others: that size.
    """
    if many.ndim == other.ndim:
        return _along_what_grows(many, images, other, others)
    if many.ndim == other.ndim + 1 and others == 1:  # a network that drops a batch of one
        axes = [a for a in range(many.ndim) if many.shape[a] == images]
        splits = [many.unbind(a) for a in axes]
        return _the_one_with(other, [parts for parts in splits if parts[0].shape == other.shape])
    return None


def _along_what_grows(
    many: Tensor, images: int, other: Tensor, others: int
) -> tuple[Tensor, ...] | None:
    sizes = list(zip(many.shape, other.shape, strict=True))
    grown = [axis for axis, (size, beside) in enumerate(sizes) if size != beside]
    if len(grown) != 1:
        return None
    (axis,) = grown
    size, beside = sizes[axis]
    of_each, rest = divmod(size, images)
    if rest or beside != of_each * others:
        return None
    if of_each == 1:
        return many.chunk(images, axis)
    last = list(_orders(other, axis, others))
    splits = zip(_orders(many, axis, images), last, strict=True)
    fit = [parts for parts, beside in splits if _is_near(parts[-1], beside[-1])]
    if len(fit) > 1 and not all(map(torch.equal, *fit)):
        return None  # the last image is as near in one order as in the other
    return fit[0] if fit else None


def _orders(tensor: Tensor, axis: int, images: int) -> Iterator[tuple[Tensor, ...]]:
    """Return both orders of parts: image by image, as windows mostly are, or part by part."""
    yield tensor.chunk(images, axis)
    before, after = tensor.shape[:axis], tensor.shape[axis + 1 :]
    yield tensor.reshape(*before, -1, images, *after).unbind(axis + 1)


def _the_one_with(last: Tensor, splits: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...] | None:
    """Return the only way to take a tensor apart, or the one of several that ends in `last`."""
    if len(splits) == 1:
        return splits[0]
    return next((parts for parts in splits if _is_near(parts[-1], last)), None)


def _is_near(one: Tensor, other: Tensor) -> bool:
    finite = other[other.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=_NEAR * largest, equal_nan=True)
