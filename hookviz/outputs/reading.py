"""Find the scores in the output of a network.

1. Pick the part that answers: what `Output.part` says, else the logits, else the one float tensor.
2. Make it one row of scores an image: ``(N,)`` and ``(N, K, 1, 1)`` become ``(N, K)``, maps their
   means over the pixels, boxes the best score of each class, one logit the scores of two labels.
3. Say what the scores are: what `Output.kind` says, else what the network states, else what the
   numbers of these images show. Where that leaves a doubt they are scores, and no percentages.

Boxes are torchvision's lists, or those of transformers' DETR. `within` asks about a part of an
answer: a region of maps, or the box that overlaps the region the most.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchvision.ops import box_convert, box_iou

from hookviz.errors import ModelError, SettingError, shorten
from hookviz.language.saying import joined, say, say_count
from hookviz.outputs.answer import (
    BINARY,
    BOXES,
    LOGITS,
    MAPS,
    MULTILABEL,
    NUMBER,
    PROBABILITIES,
    Output,
    Part,
    Scores,
)
from hookviz.wording import times

_CLASS_COUNT = 100  # that boxes without labels have at least, so that every pass has as many

_NAMES = ("logits", "out", "image_embeds", "pooler_output")  # of what answers, likeliest first
_ROUNDING = 1e-3  # by which the sum of probabilities differs from 1 at most
_LISTED = 4  # parts of an output that are named
_SURE = 0.5  # from which probability on a pixel is of a label
Cover = Callable[[int, int], NDArray[np.float64]]
"""The share of each cell of a map that is marked, ``(rows, columns)``, by how many there are."""


def is_boxes(raw: Any) -> bool:
    """Return whether an output is boxes, as torchvision's detectors put out or transformers'."""
    if isinstance(raw, Mapping):
        return "pred_boxes" in raw and "logits" in raw  # as Hugging Face's DETR
    is_list = isinstance(raw, list) and raw
    named = raw[0].keys() if is_list and isinstance(raw[0], Mapping) else set()
    return {"boxes", "labels", "scores"} <= named


def boxes_of(part: Any, size: tuple[int, int]) -> list[Tensor]:
    """Return the boxes of each image of an input of `size`, as `Answer.boxes` has them."""
    if isinstance(part, Mapping):
        scores, labels = box_scores(part).max(-1)
        edges = box_convert(part["pred_boxes"], "cxcywh", "xyxy")
        boxes = torch.cat([edges, labels[..., None], scores[..., None]], -1)
        return [*boxes.detach().float().cpu()]
    height, width = size
    listed = []
    for each in part:
        edges = each["boxes"] / each["boxes"].new_tensor([width, height, width, height])
        row = torch.cat([edges, each["labels"][:, None], each["scores"][:, None]], -1)
        listed.append(row.detach().float().cpu())
    return listed


def box_scores(part: Mapping[str, Tensor]) -> Tensor:
    """Return how probable each class is of each box of transformers' detectors, ``(N, Q, K)``."""
    return part["logits"].softmax(-1)[..., :-1]  # one more class stands for no object


def count_classes(part: Any, labels: int) -> int:
    """Return how many classes the boxes of torchvision's detectors may be of."""
    highest = max((int(label) for each in part for label in each["labels"]), default=0)
    return labels or max(_CLASS_COUNT, 1 + highest)


def _best_of_classes(part: Any, labels: int) -> Tensor:
    """Return the best box's score of each class, ``(N, K)``, 0 without a box."""
    if isinstance(part, Mapping):
        return box_scores(part).amax(1)
    count = count_classes(part, labels)
    rows = []
    for each in part:
        known = each["labels"] < count
        row = each["scores"].new_zeros(count)
        rows.append(row.scatter_reduce(0, each["labels"][known], each["scores"][known], "amax"))
    return torch.stack(rows)


def scores_within(part: Any, labels: int, region: Sequence[float], size: tuple[int, int]) -> Tensor:
    """Return each class's score of the box that overlaps a region the most, ``(N, K)``.

    By the intersection over the union. Of torchvision's boxes each is of one class, and a class
    without a box there has 0; of transformers' each has a score of every class.

    Args:
        part: the boxes.
        labels: how many labels the network has; 0 where it has none.
        region: left, top, right and bottom as shares 0…1 of the input.
        size: of the input, ``(H, W)``.
    """
    if isinstance(part, Mapping):
        edges = box_convert(part["pred_boxes"].detach(), "cxcywh", "xyxy")
        target = edges.new_tensor([region])
        nearest = torch.stack([box_iou(each, target)[:, 0].argmax() for each in edges])
        return box_scores(part)[torch.arange(len(edges), device=edges.device), nearest]
    count = count_classes(part, labels)
    rows = []
    for each in part:
        height, width = size
        target = each["boxes"].new_tensor([region]) * each["boxes"].new_tensor(
            [width, height, width, height]
        )
        overlaps = box_iou(each["boxes"].detach(), target)[:, 0]
        near = [at for at in overlaps.argsort().tolist() if overlaps[at] > 0]
        # The last one of a class overlaps the most.
        chosen = {label: at for at in near if (label := int(each["labels"][at])) < count}
        row = each["scores"].new_zeros(count)
        where = torch.tensor(list(chosen), dtype=torch.int64, device=row.device)
        rows.append(row.scatter(0, where, each["scores"][list(chosen.values())]))
    return torch.stack(rows)


def read_scores(
    output: Output,
    raw: Any,
    images: int,
    labels: int = 0,
    *,
    size: tuple[int, int] | None = None,
) -> Scores | None:
    """Return a row of scores for each image; None where the output has none.

    Args:
        output: what the output means.
        raw: what the network put out.
        images: how many there were.
        labels: how many labels the network has; 0 where it has none.
        size: of the input, ``(H, W)``, to count the pixels of each class of maps and to list the
            boxes, too.

    Raises:
        ModelError: the part that `output` names is not there.
    """
    part = picked(output.part, raw)
    if isinstance(part, Tensor) and part.ndim == 0 and images > 1 and callable(output.part):
        part = torch.stack([picked(output.part, _one_of(raw, at, images)) for at in range(images)])
    if is_boxes(part):
        best = _best_of_classes(part, labels)
        listed = None if size is None else tuple(boxes_of(part, size))
        return Scores(best, BOXES, boxes=listed) if len(best) == images else None
    if not isinstance(part, Tensor) or not _has_numbers(part):
        return None
    rows = part.reshape(1, 1) if part.ndim == 0 and images == 1 else part
    if rows.ndim == 0 or len(rows) != images:
        return None
    if labels == 1 and output.kind == NUMBER and callable(output.part):
        _check_one_number(output.part, rows)
    if rows.ndim == 1 or rows[0, ...].numel() == rows.shape[1]:
        return _of_rows(output, rows.reshape(images, -1), labels)
    if rows.ndim < 4 and output.kind != MAPS:
        return None
    return _of_maps(output, rows.flatten(2), labels, with_areas=size is not None)


def _check_one_number(function: Callable[[Any], Any], rows: Tensor) -> None:
    if rows[0].numel() != 1:
        raise SettingError(
            say(
                "{function} returns {shape} numbers for an image, and one is asked about: such as "
                "lambda out: out[:, 2], or their mean.",
                function=shorten(getattr(function, "__name__", repr(function))),
                shape=times(rows.shape[1:]),
            )
        )


def picked(part: Part, raw: Any) -> Any:
    """Return the part of an output that answers; None where several could.

    Raises:
        ModelError: the part named is not there.
    """
    if callable(part):
        try:
            return part(raw)
        except Exception as error:
            raise _part_error(part, raw, error) from error
    if part is None:
        return _by_itself(raw)
    found = raw
    for key in part if isinstance(part, tuple) else (part,):
        if isinstance(found, Tensor):
            raise _part_error(part, raw)
        is_item = isinstance(found, Mapping | Sequence)
        try:
            found = cast(Any, found)[key] if is_item else getattr(found, str(key))
        except (LookupError, TypeError, AttributeError) as error:
            raise _part_error(part, raw, error) from error
    return found


def parts_of(raw: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], Tensor]:
    """List the float tensors of an output by their paths."""
    if isinstance(raw, Tensor):
        return {path: raw} if raw.is_floating_point() else {}
    if isinstance(raw, Mapping):
        items: Any = raw.items()
    elif isinstance(raw, tuple | list):
        items = enumerate(raw)
    else:
        items = vars(raw).items() if hasattr(raw, "__dict__") else ()
    return {at: part for key, each in items for at, part in parts_of(each, (*path, key)).items()}


def _by_itself(raw: Any) -> Any:
    """Return the part that answers if none is declared: logits, boxes, or the one float tensor."""
    if isinstance(raw, Tensor) or is_boxes(raw):
        return raw
    get = raw.get if isinstance(raw, Mapping) else partial(getattr, raw)
    for name in _NAMES:
        if isinstance(found := get(name, None), Tensor) and found.is_floating_point():
            return found
    parts = parts_of(raw)
    return next(iter(parts.values())) if len(parts) == 1 else None


def _has_numbers(tensor: Tensor) -> bool:
    """Return whether a tensor is an ordinary one of floats: neither sparse, nested nor meta."""
    is_plain = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_meta
    return is_plain and tensor.is_floating_point()


def _one_of(raw: Any, at: int, images: int) -> Any:
    """Return the output for one of its images, with a batch of one."""
    if isinstance(raw, Tensor):
        return raw[at : at + 1] if raw.ndim and len(raw) == images else raw
    if isinstance(raw, Mapping):
        parts = {key: _one_of(part, at, images) for key, part in raw.items()}
        return type(raw)(**parts) if is_dataclass(raw) else parts
    if isinstance(raw, list) and len(raw) == images and not isinstance(raw[0], Tensor):
        return raw[at : at + 1]
    if isinstance(raw, tuple | list):
        each = [_one_of(part, at, images) for part in raw]
        return type(raw)(*each) if hasattr(raw, "_fields") else type(raw)(each)
    return raw


def map_probabilities(output: Output, raw: Any) -> Tensor | None:
    """Return how probable each class is at each pixel of the first image, ``(K, H, W)``.

    One logit a pixel makes two classes, without and with it. None where the output has no maps, or
    where one map is not said to be of a class.
    """
    maps = picked(output.part, raw)
    if not isinstance(maps, Tensor) or maps.ndim != 4 or not maps.is_floating_point():
        return None
    scores, kind = maps[0].detach().float().cpu(), output.kind
    if len(scores) > 1:
        sums = (scores.sum(0) - 1).abs().amax()
        if kind == PROBABILITIES or bool((scores >= 0).all() and sums < _ROUNDING):
            return scores
        return scores.sigmoid() if kind == MULTILABEL else scores.softmax(0)
    if kind not in (BINARY, MAPS, LOGITS, PROBABILITIES):
        return None
    share = scores if kind == PROBABILITIES else scores.sigmoid()
    return torch.cat([1 - share, share])


def _of_rows(output: Output, rows: Tensor, labels: int) -> Scores:
    kind = output.kind
    if rows.shape[1] == 1:
        # A softmax of one score would be 1: the only logit there is speaks for a label, or against.
        is_logit = kind == BINARY or (kind == LOGITS and output.is_said)
        if is_logit or (not kind and labels == 2):
            return Scores(torch.cat([-rows, rows], 1), BINARY)
        if kind == PROBABILITIES:
            rows = torch.cat([1 - rows, rows], 1)
    if kind == BINARY:
        raise ModelError(
            say(
                "output='binary' is one logit for two labels, and the network puts out {count:,} "
                "numbers: output='multilabel' reads each for itself, 'logits' all together.",
                count=rows.shape[1],
            )
        )
    return Scores(
        rows, kind if output.is_said and kind else _kind_of_scores(kind, rows.detach(), labels)
    )


def _kind_of_scores(stated: str, scores: Tensor, labels: int) -> str:
    """Return the kind of scores ``(N, K)`` without a declaration; empty where a doubt is left."""
    classes = scores.shape[1]
    is_within = bool(((scores >= 0) & (scores <= 1)).all())
    if is_within and classes > 1 and bool(((scores.sum(1) - 1).abs() < _ROUNDING).all()):
        return PROBABILITIES
    if stated == PROBABILITIES:
        return PROBABILITIES if is_within else ""
    if stated:
        return "" if stated == LOGITS and classes == 1 else stated
    # Labels make a class of each score; what is within 0…1 may be a sigmoid's.
    return LOGITS if labels == classes > 1 and not is_within else ""


def _of_maps(output: Output, pixels: Tensor, labels: int, *, with_areas: bool) -> Scores:
    """Return the mean of each class's scores over the pixels, ``(N, K, pixels)``, and its share."""
    pixels = _two_sided(output, pixels, labels)
    means = pixels.mean(2)
    if not output.kind and labels != pixels.shape[1]:
        return Scores(means, "")
    if not with_areas:
        return Scores(means, MAPS)
    values = pixels.detach()
    if output.kind == MULTILABEL:
        areas = (values.sigmoid() > _SURE).float().mean(2)
    else:
        counts = [torch.bincount(image, minlength=values.shape[1]) for image in values.argmax(1)]
        areas = torch.stack(counts) / values.shape[2]
    areas[values.isnan().flatten(1).any(1)] = torch.nan  # which class is highest says nothing there
    return Scores(means, MAPS, areas)


def _two_sided(output: Output, maps: Tensor, labels: int) -> Tensor:
    """Return the maps of two classes, without and with it, where there is one of one logit."""
    if maps.shape[1] > 1:
        return maps
    if output.kind == PROBABILITIES:
        return torch.cat([1 - maps, maps], 1)
    is_logit = output.kind in (BINARY, MAPS) or (not output.kind and labels == 2)
    return torch.cat([-maps, maps], 1) if is_logit else maps


def no_scores(title: str, raw: Any, images: int) -> str:
    """Return the sentence for an output without rows of scores, with a way to read it.

    Args:
        title: what the network is called.
        raw: what it put out.
        images: for how many images.
    """
    parts = parts_of(raw)
    fitting = [at for at in parts if read_scores(Output(part=at), raw, images) and at]
    chosen = repr(fitting[0] if len(fitting[0]) > 1 else fitting[0][0]) if fitting else ""
    return say_count(
        "{model} answers {count} image with {parts}, which is no row of scores. {advice}",
        "{model} answers {count} images with {parts}, which is no row of scores for each. {advice}",
        images,
        model=title,
        parts=_listed(raw),
        advice=say("Say which part answers: wrap(network, output={part}).", part=chosen)
        if chosen
        else say("Say how it answers: wrap(network, output=lambda out: …), with (N, K) numbers."),
    )


def _listed(raw: Any) -> str:
    parts = list(parts_of(raw).items())
    listed = (
        "".join((f"output{''.join(f'[{key!r}]' for key in at)} " if at else "", times(part.shape)))
        for at, part in parts[:_LISTED]
    )
    more = say("{count} more", count=len(parts) - _LISTED) if len(parts) > _LISTED else ""
    return joined((*listed, *filter(None, [more]))) or say("no tensor of floats")


def _part_error(part: Part, raw: Any, error: Exception | None = None) -> ModelError:
    named = getattr(part, "__name__", repr(part)) if callable(part) else repr(part)
    return ModelError(
        say(
            "output={part} picks nothing from what the network puts out{reason}, which is {parts}.",
            part=shorten(named),
            reason=f" ({type(error).__name__}: {shorten(str(error))})" if error else "",
            parts=_listed(raw),
        )
    )


def within(output: Output, cover: Cover, size: tuple[int, int], labels: int, name: str) -> Output:
    """Return the declaration of an answer of maps or boxes that reads it within a region.

    Maps are their means over the region; boxes the scores of the one that overlaps it the most.

    Args:
        output: what the whole answer means.
        cover: what is marked.
        size: of the input, ``(H, W)``.
        labels: how many labels the network has; 0 where it has none.
        name: of the region, by which what is computed is kept.
    """
    cover = cache(cover)  # a lens may pass a hundred inputs, all of whose maps are of one size
    marked = cover(*size) > 0
    down, across = np.flatnonzero(marked.any(1)), np.flatnonzero(marked.any(0))
    edges = (
        across[0] / size[1],
        down[0] / size[0],
        (across[-1] + 1) / size[1],
        (down[-1] + 1) / size[0],
    )

    def part(raw: Any) -> Tensor:
        answer = picked(output.part, raw)
        if is_boxes(answer):
            return scores_within(answer, labels, edges, size)
        weights = torch.from_numpy(cover(*answer.shape[2:])).to(answer)
        means: Tensor = (_two_sided(output, answer, labels) * weights).sum((2, 3)) / weights.sum()
        return means

    kind = BOXES if output.kind == BOXES else MAPS
    digest = blake2b(f"{output.key} {name}".encode(), digest_size=8).hexdigest()
    return replace(output, kind=kind, part=part, is_said=True, token=digest)
