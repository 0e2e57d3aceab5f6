"""What attends and multiplies, against the truth: NaN in one row or column comes out where seen."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from tests.explaining.receptive_fields.test_rules import Calls, check
from tests.networks import as_model


def tokens(maps: Tensor) -> Tensor:
    """(1, C, H, W) as (1, H·W, C)."""
    return maps.flatten(2).mT


def maps(cells: Tensor) -> Tensor:
    return torch.unflatten(cells.mT, 2, (14, 12))


def windows(maps: Tensor) -> Tensor:
    """(1, C, 14, 12) as (7 windows, 24 cells, C), each two rows."""
    return torch.unflatten(maps, 2, (7, 2)).movedim(2, 1)[0].flatten(2).mT


def together(cells: Tensor) -> Tensor:
    """The windows as maps again."""
    return torch.unflatten(cells.mT, 2, (2, 12)).movedim(0, 1).flatten(1, 2)[None]


def by_hand(cells: Tensor) -> Tensor:
    weights = (cells @ cells.mT / 2 + 1).softmax(-1)
    return F.dropout(weights, 0.1, training=False) @ cells


def fused(cells: Tensor) -> Tensor:
    heads = cells[:, None]
    return F.scaled_dot_product_attention(heads, heads, heads)[:, 0]


def multi_head(cells: Tensor) -> Tensor:
    first, ones = cells.movedim(1, 0), cells.new_ones  # tokens first, and then the batch
    attend: Any = F.multi_head_attention_forward
    weights = (ones(9, 3), ones(9), None, None, False, 0.0, ones(3, 3), ones(3))
    found: Tensor = attend(first, first, first, 3, 1, *weights, training=False)[0]
    return found.movedim(0, 1)


ATTENTION: dict[str, Callable[[Tensor], Tensor]] = {
    "by hand": by_hand,
    "fused": fused,
    "multi-head": multi_head,
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_sees_all_that_it_attends_to_or_its_window_and_no_more(name: str) -> None:
    attend, shape = ATTENTION[name], (3, 14, 12)
    model = as_model(Calls(lambda x: maps(attend(tokens(x)))))
    check(model, "inside", shape)
    assert receptive_fields(model, shape)["inside"].mixed == "all"
    model = as_model(Calls(lambda x: together(attend(windows(x)))))
    check(model, "inside", shape)
    field = receptive_fields(model, shape)["inside"]
    assert field.mixed == "windows"
    assert field.box(5, 3) == (4, 0, 6, 12)


PRODUCTS: dict[str, Callable[[Tensor], Tensor]] = {
    "from the right": lambda x: x @ x.new_ones(12, 5),
    "from the left": lambda x: x.new_ones(5, 14) @ x,
    "of two": lambda x: x @ x.mT,
    "in a batch": lambda x: torch.bmm(x[0], x.new_ones(3, 12, 4))[None],
    "with what has fewer dimensions": lambda x: torch.matmul(x.new_ones(2, 14), x),
    "of channels": lambda x: maps(tokens(x) @ x.new_ones(3, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_sees_rows_and_columns(name: str) -> None:
    model = as_model(Calls(PRODUCTS[name]))
    check(model, "inside", (3, 14, 12))
    assert receptive_fields(model, (3, 14, 12))["inside"].mixed == ""


def test_weights_that_are_no_attention_s_are_not_taken_for_it() -> None:
    model = as_model(Calls(lambda x: (x.mean((2, 3), keepdim=True).softmax(1) * x) @ x.mT))
    assert receptive_fields(model, (3, 14, 12))["inside"].mixed == ""
