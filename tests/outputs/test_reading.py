from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import hookviz
from hookviz.outputs.answer import Output, Part, as_output
from hookviz.outputs.reading import (
    boxes_of,
    is_boxes,
    map_probabilities,
    no_scores,
    read_scores,
    scores_within,
    within,
)

CENTRES = torch.tensor([[[0.25, 0.5, 0.5, 1.0], [0.75, 0.5, 0.5, 1.0]]])  # the halves
LOGITS = torch.tensor([[[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]]])  # of two classes and no object
DETR = {"logits": LOGITS, "pred_boxes": CENTRES}


ROWS = torch.tensor([[2.0, -1.0, 0.5], [0.1, 3.0, -2.0]])
MAPS = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
BOXES = [
    {
        "boxes": torch.zeros(3, 4),
        "labels": torch.tensor([2, 1, 2]),
        "scores": torch.tensor([0.9, 0.4, 0.7]),
    },
    {
        "boxes": torch.zeros(0, 4),
        "labels": torch.zeros(0, dtype=torch.int64),
        "scores": torch.zeros(0),
    },
]


def test_a_box_is_of_its_likeliest_class_which_is_never_none() -> None:
    assert is_boxes(DETR)
    (boxes,) = boxes_of(DETR, (7, 9))
    assert boxes[:, :4].tolist() == [[0, 0, 0.5, 1], [0.5, 0, 1, 1]]
    assert boxes[:, 4].tolist() == [0, 1]
    shares = LOGITS.softmax(-1)[0]
    torch.testing.assert_close(boxes[:, 5], torch.stack([shares[0, 0], shares[1, 1]]))
    found = scores_within(DETR, 2, (0.6, 0.2, 0.9, 0.8), (7, 9))
    torch.testing.assert_close(found, LOGITS.softmax(-1)[:, 1, :-1])
    assert not is_boxes([{"boxes": torch.zeros(1, 4), "scores": torch.zeros(1)}])
    assert not is_boxes([torch.zeros(1, 4)])
    assert not is_boxes([])


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


def scores(raw: Any, part: Output | Part = None, labels: int = 0) -> Tensor:
    found = read_scores(Output() if part is None else as_output(part), raw, 2, labels)
    assert found is not None
    return found.values


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (ROWS, None),
        (ROWS[:, :, None, None], None),
        ({"logits": ROWS, "hidden": MAPS}, None),
        (SimpleNamespace(logits=ROWS, hidden=MAPS), None),
        ((ROWS,), None),
        ([{"only": ROWS, "count": torch.ones(2, dtype=torch.int64)}], None),
        ((MAPS, ROWS), 1),
        ({"a": MAPS, "b": (MAPS, ROWS)}, ("b", 1)),
        ({"a": MAPS, "b": ROWS}, "b"),
        ({"a": MAPS, "b": ROWS}, lambda out: out["b"]),
    ],
)
def test_the_part_that_answers_is_found(raw: Any, part: Part) -> None:
    assert torch.equal(scores(raw, part), ROWS)


def test_one_number_an_image_is_a_row_whoever_computes_it() -> None:
    assert torch.equal(scores(ROWS[:, 0]), ROWS[:, :1])
    found = scores({"a": MAPS}, lambda out: out["a"][:, 2].mean())
    torch.testing.assert_close(found, MAPS[:, 2].mean((1, 2))[:, None])


def test_maps_are_their_means_and_boxes_the_best_score_of_each_class() -> None:
    found: Any = read_scores(Output("maps"), OrderedDict(out=MAPS, aux=MAPS), 2, size=(4, 5))
    assert found.areas is not None
    torch.testing.assert_close(found.values, MAPS.mean((2, 3)))
    for image, areas in zip(MAPS, found.areas, strict=True):
        counts = torch.bincount(image.argmax(0).flatten(), minlength=3)
        torch.testing.assert_close(areas, counts / counts.sum())
    found = read_scores(Output("boxes"), BOXES, 2, 4)
    assert found.kind == "boxes"
    torch.testing.assert_close(
        found.values, torch.tensor([[0.0, 0.4, 0.9, 0.0], [0.0, 0.0, 0.0, 0.0]])
    )


@pytest.mark.parametrize(
    ("raw", "kind", "labels", "expected"),
    [
        (ROWS[:, :1], "binary", 0, "binary"),
        (ROWS[:, :1], "logits", 0, "binary"),  # a softmax of one logit would be 1
        (ROWS[:, :1], "", 2, "binary"),
        (ROWS[:, :1], "", 0, ""),
        (ROWS, "", 3, "logits"),
        (ROWS, "", 0, ""),
        (ROWS.softmax(1), "", 0, "probabilities"),
        (ROWS.sigmoid(), "", 3, ""),  # it could be four sigmoids
        (ROWS, "embedding", 0, "embedding"),
        (MAPS, "", 3, "maps"),
        (MAPS, "", 0, ""),
        (MAPS[:, :1], "", 0, ""),
    ],
)
def test_what_is_not_said_is_found_or_left_open(
    raw: Tensor, kind: str, labels: int, expected: str
) -> None:
    found: Any = read_scores(Output(kind), raw, 2, labels)
    assert found.kind == expected


def test_one_logit_speaks_for_two_labels_and_not_for_five() -> None:
    logit = torch.tensor([[-0.3]])
    found: Any = read_scores(Output("binary"), logit, 1)
    shares = found.reading.values(found.values)
    torch.testing.assert_close(shares, torch.cat([1 - logit.sigmoid(), logit.sigmoid()], 1))
    given: Any = read_scores(Output("probabilities"), logit.sigmoid(), 1)
    torch.testing.assert_close(given.values, shares)
    with pytest.raises(hookviz.ModelError, match="3 numbers: output='multilabel'"):
        read_scores(Output("binary"), ROWS, 2)


def test_numbers_that_contradict_a_statement_or_are_none_leave_a_doubt() -> None:
    stated = Output("probabilities", is_said=False)
    for raw, kind in ((ROWS.sigmoid(), "probabilities"), (ROWS, "")):
        found: Any = read_scores(stated, raw, 2)
        assert found.kind == kind
    nested = torch.nested.nested_tensor([*ROWS], layout=torch.jagged)
    for raw in (ROWS.to_sparse(), nested, ROWS.to("meta")):
        assert read_scores(Output(), raw, 2) is None


@pytest.mark.parametrize("raw", [(ROWS, MAPS), {"x": ROWS, "y": {"z": ROWS}}])
def test_of_several_that_could_answer_none_is_taken_and_the_advice_holds(raw: Any) -> None:
    assert read_scores(Output(), raw, 2) is None
    said = no_scores("Net", raw, 2)
    advice = said.partition("wrap(network, output=")[2].partition(").")[0]
    assert torch.equal(scores(raw, eval(advice)), ROWS)  # noqa: S307


def test_a_part_that_is_not_there_is_told_with_those_that_are() -> None:
    for part in ("z", 3, ("x", "q"), lambda out: out["q"]):
        with pytest.raises(hookviz.ModelError, match=r"picks nothing .*output\['x'\] 2×3"):
            scores({"x": ROWS, "y": MAPS}, part)


def test_pixels_have_the_probabilities_that_the_output_means() -> None:
    one = MAPS[:, :1]
    torch.testing.assert_close(map_probabilities(Output(), MAPS), MAPS[0].softmax(0))
    torch.testing.assert_close(map_probabilities(Output(), MAPS.softmax(1)), MAPS[0].softmax(0))
    torch.testing.assert_close(map_probabilities(Output("multilabel"), MAPS), MAPS[0].sigmoid())
    shares: Any = map_probabilities(Output("binary"), one)
    torch.testing.assert_close(shares[1], one[0, 0].sigmoid())
    assert map_probabilities(Output(), one) is None
    assert map_probabilities(Output(), ROWS) is None


def left(rows: int, columns: int) -> NDArray[np.float64]:
    marked = np.zeros((rows, columns))
    marked[:, : columns // 2] = 1
    return marked


def test_maps_are_their_means_over_the_region_by_its_own_key() -> None:
    maps = torch.randn(2, 3, 4, 6)
    output = within(Output("maps", "out"), left, (32, 48), 0, "left")
    found: Any = read_scores(output, {"out": maps, "aux": maps + 1}, 2)
    assert found.kind == "maps"
    torch.testing.assert_close(found.values, maps[..., :3].mean((2, 3)))
    one, same, other, another = (
        within(Output(kind), left, (8, 8), 0, name).key
        for kind, name in (("maps", "a"), ("maps", "a"), ("maps", "b"), ("binary", "a"))
    )
    assert one == same
    assert len({one, other, another}) == 3


def test_boxes_are_those_that_overlap_the_edges_of_what_is_marked() -> None:
    def marks(rows: int, columns: int) -> NDArray[np.float64]:
        marked = np.zeros((rows, columns))
        marked[2:5, 6:12] = 1
        return marked

    exact = torch.tensor([6.0, 2, 12, 5])
    for at in range(4):
        for step in (-1, 1):
            other = exact.clone()
            other[at] += step
            answer = [
                {
                    "boxes": torch.stack([other, exact]),
                    "labels": torch.tensor([0, 0]),
                    "scores": torch.tensor([0.9, 0.3]),
                }
            ]
            output = within(Output("boxes"), marks, (10, 20), 1, "part")
            found = read_scores(output, answer, 1, 1, size=(10, 20))
            assert found is not None
            torch.testing.assert_close(found.values, torch.tensor([[0.3]]))
