"""Boxes of transformers' detectors; torchvision's are those of a whole network in the lenses."""

import torch

from hookviz.outputs.boxes import boxes_of, is_boxes, scores_within

CENTRES = torch.tensor([[[0.25, 0.5, 0.5, 1.0], [0.75, 0.5, 0.5, 1.0]]])  # the halves
LOGITS = torch.tensor([[[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]]])  # of two classes and no object
DETR = {"logits": LOGITS, "pred_boxes": CENTRES}


def test_boxes_without_classes_are_none() -> None:
    assert not is_boxes([{"boxes": torch.zeros(1, 4), "scores": torch.zeros(1)}])
    assert not is_boxes([torch.zeros(1, 4)])
    assert not is_boxes([])


def test_a_box_is_of_its_likeliest_class_which_is_never_none() -> None:
    assert is_boxes(DETR)
    (boxes,) = boxes_of(DETR, (7, 9))
    assert boxes[:, :4].tolist() == [[0, 0, 0.5, 1], [0.5, 0, 1, 1]]
    assert boxes[:, 4].tolist() == [0, 1]
    shares = LOGITS.softmax(-1)[0]
    torch.testing.assert_close(boxes[:, 5], torch.stack([shares[0, 0], shares[1, 1]]))


def test_all_scores_are_those_of_the_box_there() -> None:
    found = scores_within(DETR, 2, (0.6, 0.2, 0.9, 0.8), (7, 9))
    torch.testing.assert_close(found, LOGITS.softmax(-1)[:, 1, :-1])


def test_of_each_class_it_is_the_box_that_overlaps_most() -> None:
    part = [
        {
            "boxes": torch.tensor([[0.0, 0, 10, 10], [0, 0, 4, 4], [0, 0, 5, 4], [20, 20, 30, 30]]),
            "labels": torch.tensor([1, 1, 2, 0]),
            "scores": torch.tensor([0.9, 0.3, 0.2, 0.8]),
        }
    ]
    found = scores_within(part, 3, (0.0, 0.0, 0.1, 0.1), (40, 40))
    assert found.tolist() == [[0, torch.tensor(0.3).item(), torch.tensor(0.2).item()]]
    without = [{name: values[:0] for name, values in part[0].items()}]
    assert scores_within(without, 3, (0.0, 0.0, 0.1, 0.1), (40, 40)).tolist() == [[0, 0, 0]]
