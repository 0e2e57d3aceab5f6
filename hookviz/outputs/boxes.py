"""Read the boxes that detectors put out: torchvision's lists, and those of transformers' DETR."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.ops import box_convert, box_iou

_CLASS_COUNT = 100  # that boxes without labels have at least, so that every pass has as many


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


def best_of_classes(part: Any, labels: int) -> Tensor:
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
        asked = edges.new_tensor([region])
        nearest = torch.stack([box_iou(each, asked)[:, 0].argmax() for each in edges])
        return box_scores(part)[torch.arange(len(edges), device=edges.device), nearest]
    count = count_classes(part, labels)
    rows = []
    for each in part:
        height, width = size
        asked = each["boxes"].new_tensor([region]) * each["boxes"].new_tensor(
            [width, height, width, height]
        )
        overlaps = box_iou(each["boxes"].detach(), asked)[:, 0]
        near = [at for at in overlaps.argsort().tolist() if overlaps[at] > 0]
        # The last one of a class overlaps the most.
        chosen = {label: at for at in near if (label := int(each["labels"][at])) < count}
        row = each["scores"].new_zeros(count)
        where = torch.tensor(list(chosen), dtype=torch.int64, device=row.device)
        rows.append(row.scatter(0, where, each["scores"][list(chosen.values())]))
    return torch.stack(rows)
