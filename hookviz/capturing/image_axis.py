"""Find the axis that counts the images of a batch, by comparing two sizes of batch.

A transformer can have them second, ``(L, N, C)``, a windowed one several windows of each,
``(N·W, …)``, and a position code is the same for all. One size of batch tells none of that where L
is N. What grows with the batch is the axis of images.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

_NEAR = 1e-3  # of the largest value: other images than the one looked for are further away


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
