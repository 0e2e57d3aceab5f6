import numpy as np
import pytest

from hookviz.atlas.top_k import NOBODY, TopK

K, CHANNELS = 4, 5


def listed(values: np.ndarray, indices: np.ndarray, first: int = 0) -> TopK:
    """What a list holds after images are offered two at a time; a cell tells its image's place."""
    top = TopK(values.shape[1] + first, K)
    for start in range(0, len(values), 2):
        part, at = values[start : start + 2], indices[start : start + 2]
        cells = np.broadcast_to(at[:, None, None], (*part.shape, 2)).astype(np.int32)
        top.offer(slice(first, first + values.shape[1]), part, at, cells)
    return top


def by_sorting(values: np.ndarray) -> list[list[int]]:
    """The places of the largest of each channel, of equal ones the first."""
    return [
        sorted(range(len(values)), key=lambda i, c=c: (-values[i, c], i))[:K]  # type: ignore[misc]
        for c in range(values.shape[1])
    ]


def test_it_is_what_sorting_gives_and_ties_go_to_the_earlier() -> None:
    values = np.random.default_rng(0).integers(0, 6, (31, CHANNELS)).astype(np.float32)
    top = listed(values, np.arange(31), first=2)
    assert top.indices[2:].tolist() == by_sorting(values)
    assert (top.cells[2:, :, 1] == top.indices[2:]).all()
    np.testing.assert_array_equal(
        top.values[2:], np.take_along_axis(values, top.indices[2:].T, 0).T
    )
    assert (top.indices[:2] == NOBODY).all()


def test_what_is_nothing_takes_no_place() -> None:
    values = np.array([[-np.inf], [1], [-np.inf]], np.float32)
    top = listed(values, np.arange(3))
    assert top.indices.tolist() == [[1, NOBODY, NOBODY, NOBODY]]


@pytest.mark.parametrize("seed", range(6))
def test_lists_of_parts_in_any_order_join_to_the_list_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 9, (40, CHANNELS)).astype(np.float32)
    parts = np.split(np.arange(40), np.sort(rng.choice(np.arange(1, 40), 4, replace=False)))
    lists = [listed(values[part], part) for part in parts]
    order = rng.permutation(len(lists))
    joined = TopK(CHANNELS, K)
    for number in order:
        joined.merge(lists[number], {})
    assert joined.indices.tolist() == by_sorting(values)
    left, right = TopK(CHANNELS, K), TopK(CHANNELS, K)
    for number in order[:2]:
        left.merge(lists[number], {})
    for number in order[2:]:
        right.merge(lists[number], {})
    right.merge(left, {})
    assert right.indices.tolist() == joined.indices.tolist()
    assert right.cells.tolist() == joined.cells.tolist()


def test_a_copy_in_another_part_counts_once_as_the_first() -> None:
    rng = np.random.default_rng(1)
    values = rng.permuted(np.arange(60, dtype=np.float32).reshape(20, 3), axis=0)
    copies = {13: 4, 15: 4, 11: 2}
    for copy, first in copies.items():
        values[copy] = values[first]
    joined = listed(values[:10], np.arange(10))
    joined.merge(listed(values[10:], np.arange(10, 20)), copies)
    without = np.delete(values, list(copies), axis=0)
    indices = np.delete(np.arange(20), list(copies))
    expected = [[int(indices[i]) for i in row] for row in by_sorting(without)]
    assert joined.indices.tolist() == expected
    other = listed(values[10:], np.arange(10, 20))
    other.merge(listed(values[:10], np.arange(10)), copies)
    assert other.indices.tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_what_does_not_exceed_the_lists_before_may_be_left_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 9, (60, CHANNELS)).astype(np.float32)
    joined, left_out = TopK(CHANNELS, K), 0
    for part in np.split(np.arange(60), [20, 40]):
        later = TopK(CHANNELS, K, joined.least.copy())
        assert (later.least >= joined.least).all()
        cells = np.zeros((len(part), CHANNELS, 2), np.int32)
        later.offer(slice(0, CHANNELS), values[part], part, cells)
        left_out += int((later.indices == NOBODY).any(axis=1).sum())
        joined.merge(later, {})
    assert joined.indices.tolist() == by_sorting(values)
    assert left_out > 0
