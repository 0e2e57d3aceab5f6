from operator import attrgetter

import numpy as np
import torch

from hookviz.atlas.batched_pass import reduced
from hookviz.atlas.tally import MOST_REASONS, SUMS, Tally

CHANNELS = 6


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


def test_all_that_is_left_out_is_counted_and_the_first_are_named() -> None:
    one, other = Tally.empty(1, 1, 0), Tally.empty(1, 1, 0)
    for index in range(MOST_REASONS):
        one.leave_out(2 * index, "even")
        other.leave_out(2 * index + 1, "odd")
    one.leave_out(9999, "late")
    other.merge(one)
    assert other.left_out_count == 2 * MOST_REASONS + 1
    assert list(other.left_out) == list(range(MOST_REASONS))


def test_zeros_are_counted_among_sampled_cells() -> None:
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
