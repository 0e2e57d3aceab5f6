from operator import attrgetter

import numpy as np
import pytest
import torch

from hookviz.atlas.shard_work import reduced
from hookviz.atlas.tally import BINS, MOST_REASONS, NOBODY, SUMS, Histograms, Tally, TopK, edges

K, TOP_CHANNELS, CHANNELS = 4, 5, 6


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
    values = np.random.default_rng(0).integers(0, 6, (31, TOP_CHANNELS)).astype(np.float32)
    top = listed(values, np.arange(31), first=2)
    assert top.indices[2:].tolist() == by_sorting(values)
    assert (top.cells[2:, :, 1] == top.indices[2:]).all()
    np.testing.assert_array_equal(
        top.values[2:], np.take_along_axis(values, top.indices[2:].T, 0).T
    )
    assert (top.indices[:2] == NOBODY).all()
    values = np.array([[-np.inf], [1], [-np.inf]], np.float32)
    top = listed(values, np.arange(3))
    assert top.indices.tolist() == [[1, NOBODY, NOBODY, NOBODY]]


@pytest.mark.parametrize("seed", range(6))
def test_lists_of_parts_in_any_order_join_to_the_list_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 9, (40, TOP_CHANNELS)).astype(np.float32)
    parts = np.split(np.arange(40), np.sort(rng.choice(np.arange(1, 40), 4, replace=False)))
    lists = [listed(values[part], part) for part in parts]
    order = rng.permutation(len(lists))
    joined = TopK(TOP_CHANNELS, K)
    for number in order:
        joined.merge(lists[number], {})
    assert joined.indices.tolist() == by_sorting(values)
    left, right = TopK(TOP_CHANNELS, K), TopK(TOP_CHANNELS, K)
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
    values = rng.integers(0, 9, (60, TOP_CHANNELS)).astype(np.float32)
    joined, left_out = TopK(TOP_CHANNELS, K), 0
    for part in np.split(np.arange(60), [20, 40]):
        later = TopK(TOP_CHANNELS, K, joined.least.copy())
        assert (later.least >= joined.least).all()
        cells = np.zeros((len(part), TOP_CHANNELS, 2), np.int32)
        later.offer(slice(0, TOP_CHANNELS), values[part], part, cells)
        left_out += int((later.indices == NOBODY).any(axis=1).sum())
        joined.merge(later, {})
    assert joined.indices.tolist() == by_sorting(values)
    assert left_out > 0


def of_parts(values: np.ndarray, cuts: list[int]) -> Histograms:
    histograms = Histograms(len(values))
    for part in np.split(values, cuts, axis=1):
        histograms.add(slice(0, len(values)), part)
    return histograms


@pytest.fixture
def values() -> np.ndarray:
    rng = np.random.default_rng(0)
    scales = np.array([[1e-20], [0.3], [1.0], [700.0]])
    return np.asarray(rng.standard_normal((4, 500)) * scales, np.float32)


def test_bins_hold_what_numpy_counts(values: np.ndarray) -> None:
    histograms = of_parts(values, [3, 40, 41, 333])
    for channel, row in enumerate(values):
        exponent = int(histograms.exponents[channel])
        expected, _ = np.histogram(row.astype(float), edges(exponent))
        np.testing.assert_array_equal(histograms.counts[channel], expected)
        assert histograms.counts[channel].sum() == 500
        largest = np.abs(row).max()
        assert largest < edges(exponent)[-1]
        assert largest >= edges(exponent - 1)[-1] or exponent == -64  # no wider than it has to be


@pytest.mark.parametrize("cuts", [[], [1], [250], [100, 200, 499]])
def test_the_order_and_the_parts_change_nothing(values: np.ndarray, cuts: list[int]) -> None:
    whole, parts = of_parts(values, []), of_parts(values, cuts)
    shuffled = of_parts(values[:, ::-1].copy(), cuts)
    joined = Histograms(4)
    for part in np.split(values, cuts or [7], axis=1)[::-1]:
        joined.merge(of_parts(part, []))
    for other in (parts, shuffled, joined):
        np.testing.assert_array_equal(other.counts, whole.counts)
        np.testing.assert_array_equal(other.exponents, whole.exponents)


def test_nothing_but_zeros_and_what_is_not_finite() -> None:
    histograms = Histograms(3)
    histograms.add(slice(1, 3), np.array([[0, 0, 0], [np.nan, np.inf, 2]], np.float32))
    assert histograms.counts[1, BINS // 2] == 3
    assert histograms.counts[2].sum() == 1
    assert histograms.counts[0].sum() == 0
    histograms.add(slice(1, 2), np.array([[-8.0]], np.float32))
    assert histograms.counts[1, BINS // 2] == 3
    assert histograms.counts[1].sum() == 4


def tally_of(maps: torch.Tensor, indices: range, names: list[bytes], classes: list[int]) -> Tally:
    tally = Tally.empty(CHANNELS, 3, 2)
    for at, index in enumerate(indices):
        layers = [
            reduced(maps[at : at + 1, :4], tally.top.least[:4], 0),
            reduced(maps[at : at + 1, 4:], tally.top.least[4:], 4),
        ]
        tally.add(layers, [index], [names[at]], [classes[at]])
    return tally


def test_parts_join_to_the_whole() -> None:
    maps = torch.randn(20, CHANNELS, 5, 4, generator=torch.Generator().manual_seed(0))
    maps[13] = maps[2]
    names = [bytes([2 if number == 13 else number]) for number in range(20)]
    classes = [number % 3 - 1 for number in range(20)]
    whole = tally_of(maps, range(20), names, classes)
    joined = Tally.empty(CHANNELS, 3, 2)
    for start, end in ((0, 5), (5, 6), (6, 17), (17, 20)):
        part = slice(start, end)
        joined.merge(tally_of(maps[part], range(start, end), names[part], classes[part]))
    for name in SUMS:
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-12)
    np.testing.assert_array_equal(joined.top.indices, whole.top.indices)
    np.testing.assert_array_equal(joined.top.cells, whole.top.cells)
    np.testing.assert_array_equal(joined.histograms.counts, whole.histograms.counts)
    assert (joined.tallied, joined.repeated) == (whole.tallied, whole.repeated) == (20, 1)
    assert joined.digests == whole.digests
    # against NumPy: a copy counts in the sums, and once in the lists
    flat = maps.numpy().reshape(20, CHANNELS, -1)
    np.testing.assert_allclose(whole.sums, flat.sum((0, 2), dtype=float), rtol=1e-5, atol=1e-5)
    best = np.delete(flat.max(axis=2), 13, axis=0)
    indices = np.delete(np.arange(20), 13)[np.argsort(-best, axis=0, kind="stable")[:3].T]
    np.testing.assert_array_equal(whole.top.indices, indices)
    of_first = [number for number in range(20) if classes[number] == 0]
    np.testing.assert_allclose(whole.class_maxima[0], flat.max(axis=2)[of_first].sum(0), rtol=1e-6)
    strongest = np.bincount(flat[:, 4:].max(axis=2).argmax(axis=1), minlength=2)
    np.testing.assert_array_equal(whole.strongest[4:], strongest)


def test_what_is_left_out_and_zeros_are_counted() -> None:
    one, other = Tally.empty(1, 1, 0), Tally.empty(1, 1, 0)
    for index in range(MOST_REASONS):
        one.leave_out(2 * index, "even")
        other.leave_out(2 * index + 1, "odd")
    one.leave_out(9999, "late")
    other.merge(one)
    assert other.left_out_count == 2 * MOST_REASONS + 1
    assert list(other.left_out) == list(range(MOST_REASONS))
    maps = torch.zeros(2, 3, 3, 2)
    maps[:, 1] = torch.arange(12.0).reshape(2, 3, 2)
    maps[:, 2] = -1
    tally = Tally.empty(3, 1, 0)
    tally.add([reduced(maps, tally.top.least, 0)], [0, 1], [b"a", b"b"], [-1, -1])
    assert tally.zeros.tolist() == [12, 1, 0]


def test_a_layer_that_did_not_run_moves_no_other_and_one_of_one_channel_sums_as_alone() -> None:
    maps = 1e3 + torch.randn(24, CHANNELS, 5, 4, generator=torch.Generator().manual_seed(1))
    parts = {0: slice(0, 2), 3: slice(3, 4), 4: slice(4, 6)}  # channel 2 is of a layer left out
    together, alone = Tally.empty(CHANNELS, 3, 2), Tally.empty(CHANNELS, 3, 2)
    names, classes = (
        [bytes([number]) for number in range(24)],
        [number % 3 - 1 for number in range(24)],
    )
    layers = [
        reduced(maps[:, part], together.top.least[part], first) for first, part in parts.items()
    ]
    together.add(layers, range(24), names, classes)
    for layer in layers:
        single = Tally.empty(CHANNELS, 3, 2)
        single.add([layer], range(24), names, classes)
        alone.merge(single)
    for name in (*SUMS[:-1], "top.values", "top.indices", "top.cells", "histograms.counts"):
        np.testing.assert_array_equal(attrgetter(name)(together), attrgetter(name)(alone), name)
    assert together.images.tolist() == [24, 24, 0, 24, 24, 24]
    assert together.sums[3] == layers[1].sums.sum(axis=0)[0]  # to the last bit
