import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.network_map.followed_pass import ExecutionTrace, follow_pass
from hookviz.explaining.network_map.layout import (
    ENTRY,
    EXIT,
    Part,
    PlacedPart,
    Point,
    in_a_tall_window,
    in_a_wide_window,
    lay_out,
    network_map,
)
from hookviz.types import ActivationKey, Model
from tests.networks import as_model, seeded


class Branches(nn.Module):
    """A block with a shortcut that runs twice, a concatenation with the image, and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(nn.ReLU(), nn.Conv2d(3, 3, 1)))
        self.last = nn.Conv2d(6, 4, 1)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, images: Tensor) -> Tensor:
        once = self.block(images)
        twice = self.block(once) + once
        maps = self.last(torch.cat([twice, images], 1))
        tokens = maps.flatten(2).transpose(1, 2)
        mixed: Tensor = self.attention(tokens, tokens, tokens)[0]
        return mixed


def traced(model: Model, image: object) -> ExecutionTrace:
    return follow_pass(model, prepare_input(model, image), joins=True)


def test_blocks_hold_what_ran_in_them_and_lines_pass_their_borders(noise: Tensor) -> None:
    whole = network_map(traced(as_model(seeded(Branches)), noise), "Branches")
    assert [str(part.address) for part in whole.parts] == [
        *("block", "block#1", "add", "cat", "last", "attention"),
    ]
    assert set(whole.lines) == {
        *((ENTRY, 0), (0, 1), (0, 2), (1, 2), (2, 3), (ENTRY, 3), (3, 4), (4, 5), (5, EXIT)),
    }
    block = whole.parts[0]
    assert set(block.lines) == {(ENTRY, 0), (0, 1), (1, EXIT)}
    assert [str(part.address) for part in block.parts[1].parts] == ["block.1.0", "block.1.1"]


def test_what_is_in_the_largest_of_a_few_blocks_lies_beside_the_others(noise: Tensor) -> None:
    features = nn.Sequential(*(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(5)))
    model = as_model(nn.Sequential(features, nn.Sequential(nn.Flatten(), nn.Linear(768, 2))))
    whole = network_map(traced(model, noise))
    names = [str(part.address) for part in whole.parts]
    assert names == ["0.0", "0.1", "0.2", "0.3", "0.4", "1"]


def drawings(placed: PlacedPart) -> Iterator[PlacedPart]:
    """Yield each part that has a drawing."""
    if placed.inside:
        yield placed
    for each in placed.inside:
        yield from drawings(each)


def assert_is_drawn_well(whole: PlacedPart) -> None:
    """Check that no card lies over another, and that lines lead forward from card to card."""
    for drawing in drawings(whole):
        width, height = drawing.size
        cards = drawing.inside
        for at, card in enumerate(cards):
            assert 0 <= card.left <= card.left + card.width <= width + 1e-9
            assert -1e-9 <= card.top <= card.top + card.height <= height + 1e-9
            for other in cards[at + 1 :]:
                across = min(card.left + card.width, other.left + other.width)
                down = min(card.top + card.height, other.top + other.height)
                assert across <= max(card.left, other.left) or down <= max(card.top, other.top)
        assert [(begin, end) for begin, end, _ in drawing.lines] == list(drawing.part.lines)
        for begin, end, points in drawing.lines:
            assert points[0][0] == (cards[begin].left + cards[begin].width if begin >= 0 else 0)
            assert points[-1][0] == (cards[end].left if end >= 0 else width)
            others = [card for at, card in enumerate(cards) if at not in (begin, end)]
            for start, stop in itertools.pairwise(points):
                assert not any(crosses(card, start, stop) for card in others), (begin, end)


def crosses(card: PlacedPart, one: Point, other: Point) -> bool:
    """Return whether the straight way from a point to another leads through a card."""
    for share in (0.02, 0.25, 0.5, 0.75, 0.98):
        x, y = (at + share * (to - at) for at, to in zip(one, other, strict=True))
        inside = card.left < x < card.left + card.width, card.top < y < card.top + card.height
        if all(inside):
            return True
    return False


@pytest.mark.parametrize("name", ["shapesnet", "squeezenet"])
def test_no_card_lies_over_another_and_lines_lead_forward(name: str) -> None:
    model = hookviz.load_model(name)
    trace = follow_pass(model, prepare_input(model, "assets/samples/cat.jpg"), joins=True)
    placed = lay_out(network_map(trace))
    assert_is_drawn_well(placed)
    tall = in_a_tall_window(placed)
    assert_is_drawn_well(tall)
    assert tall.size[0] / tall.size[1] <= placed.size[0] / placed.size[1]
    assert (name == "shapesnet") or tall.size[0] / tall.size[1] < 1.5
    wide = in_a_wide_window(placed)  # which photograph and classes share with it
    assert_is_drawn_well(wide)
    width, height = wide.size
    beside = min(3.0, max(1.5, height)) + 0.5
    assert 1.2 < (width + 2 * beside) / max(height, beside) < 3.2
    even = lay_out(network_map(trace), is_even=True)  # as in print
    assert_is_drawn_well(even)
    for block in list(drawings(even))[1:]:
        assert (block.width, block.height) > block.size
        assert block.width - block.size[0] == pytest.approx(block.height - block.size[1])


def chain(count: int, lines: tuple[tuple[int, int], ...] = ()) -> Part:
    parts = tuple(
        Part(ActivationKey(f"conv{at}"), "Conv2d", at + 1, "1×4×8×8") for at in range(count)
    )
    through = tuple((at, at + 1) for at in range(-1, count - 1))
    return Part(ActivationKey(""), "", 0, "", parts, (*through, (count - 1, -2), *lines))


def test_a_thousand_layers_in_a_row_are_drawn() -> None:
    cards = lay_out(chain(1000)).inside
    assert len(cards) == 1000
    for one, other in itertools.pairwise(cards):  # on the line of a text, or the next one
        assert one.left + one.width < other.left or one.top + one.height < other.top
    assert_is_drawn_well(lay_out(chain(100)))


def test_where_all_lead_to_all_lines_are_arcs_above() -> None:
    lines = tuple((at, to) for at in range(30) for to in range(at + 2, 30))
    placed = lay_out(chain(30, lines))
    assert_is_drawn_well(placed)
    least = min(card.top for card in placed.inside)
    assert all(min(y for _, y in points) < least for a, b, points in placed.lines if b > a + 1)


def test_a_card_is_higher_where_the_maps_are() -> None:
    small, large = (lay_out(chain(1), {1: rows}).inside[0].height for rows in (7, 112))
    assert small < large


def test_a_part_without_lines_has_a_place(noise: object) -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Conv2d(3, 2, 1), nn.Conv2d(3, 2, 1)

        def forward(self, images):  # type: ignore[no-untyped-def]
            self.other(images)
            return self.one(images)

    model = as_model(Unused())
    trace = follow_pass(model, prepare_input(model, noise), joins=True)
    assert_is_drawn_well(lay_out(network_map(trace)))
