"""Lines against plain loops over cells that are far from any border."""

import numpy as np
import pytest

from hookviz.explaining.endless import Line, Taps, moved_to, of_pixels, shares, together, window

FAR = range(240, 264)


def brute(
    cells: dict[int, tuple[float, float]], taps: Taps, count: int
) -> list[tuple[float, float]]:
    """First pixel and the one after the last of cells that are made from `cells` by `taps`."""
    made = []
    for places in taps.of(count).tolist():
        inside = [cells[place] for place in places if place in cells]
        made.append((min(first for first, _ in inside), max(last for _, last in inside)))
    return made


@pytest.mark.parametrize(
    "chain",
    [
        [window(3, padding=1)],
        [window(3, 2, 1), window(5, 2), window(2, 3, 0, 4)],
        [window(3, 2), shares(3, 5), window(3)],
        [shares(1, 2), window(3, 3), shares(1, 2), window(4, 1, 2), window(1, 2)],
    ],
)
def test_a_line_goes_on_as_a_long_map_does(chain: list[Taps]) -> None:
    line: Line | None = of_pixels(-2)
    cells = {place: (float(place), place + 1.0) for place in range(4000)}
    for taps in chain:
        assert line is not None
        line = line.through(taps)
        count = int(len(cells) * taps.period / taps.step) - 40
        cells = dict(enumerate(brute(cells, taps, count)))
    assert line is not None
    for place in FAR:
        first, last = line.at(np.array(place))
        assert (-first, last) == cells[place]
    assert line.size == max(cells[place][1] - cells[place][0] for place in FAR)
    assert line.stride == (cells[270][0] - cells[240][0]) / 30


def test_windows_name_the_cells_under_them() -> None:
    assert window(3, 2, 1).of(3).tolist() == [[-1, 0, 1], [1, 2, 3], [3, 4, 5]]
    assert shares(5, 2).of(2).tolist() == [[0, 1, 2], [2, 3, 4]]
    assert shares(5, 3).of(3).tolist() == [[0, 1, -1], [1, 2, 3], [3, 4, -1]]


def test_lines_go_together_only_where_they_go_on_alike() -> None:
    fine, coarse = of_pixels(-1), of_pixels(-1).through(window(2, 2))
    assert coarse is not None
    again = coarse.through(shares(1, 2))
    both = together([fine, again])
    assert both is not None
    assert (both.period, both.shift, both.size) == (2, 2, 2)
    assert together([fine, coarse]) is None
    assert together([fine, None]) is None
    assert together([fine, moved_to(fine, -2)]) is None


def test_a_period_that_is_too_long_is_no_line() -> None:
    line: Line | None = of_pixels(-1)
    for _ in range(4):
        line = line and line.through(shares(8, 9))
    assert line is None
