import math

import pytest

from hookviz.drawing.panels import TablePanel
from hookviz.wording import (
    byte_size,
    bytes_of,
    csv_cell,
    memory_size,
    number,
    numbers_listed,
    percent,
    read_numbers,
    text_table,
    time_left,
    times,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (46.8e6, "46.8 MB"), (2.5e9, "2.5 GB")],
)
def test_bytes_in_words(count: float, text: str) -> None:
    assert byte_size(count) == text


def test_shapes_bytes_and_shares_in_words() -> None:
    assert times((64, 112, 112)) == "64×112×112"
    assert times(()) == ""
    assert bytes_of(5, 10) == "5 of 10 bytes"
    assert bytes_of(70_001, 200_000) == "70.0 of 200.0 kB"
    assert bytes_of(300_000, 87_300_000) == "0.3 of 87.3 MB"
    assert bytes_of(12_300_000, 2_460_000_000) == "12.3 of 2460.0 MB"
    assert memory_size(2460 * 1024 * 1024) == "2,460 MB"
    shares = {0.5578: "55.8 %", 1.0: "100.0 %", 0.0004: "< 0.1 %", 0.0: "< 0.1 %"}
    assert {share: percent(share) for share in shares} == shares
    assert percent(float("nan")) == "NaN"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-1.318, "−1.32"),
        (12_345.0, "12,300"),
        (4.1e-5, "4.10×10⁻⁵"),
        (math.nan, "NaN"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers_in_words(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "seconds", "text"),
    [
        (0, 5, ""),
        (0.001, 5, ""),
        (0.1, 0.6, "about 5 s left"),
        (0.1, 4.9, "about 40 s left"),
        (0.02, 5, "about 4 min left"),
        (0.99, 5, ""),
        (1, 100, ""),
    ],
)
def test_the_time_that_is_left(share: float, seconds: float, text: str) -> None:
    assert time_left(share, seconds) == text


def test_numbers_with_spans_are_read_and_written() -> None:
    assert read_numbers(["7", " 3-5 ", "", 4], 10) == (3, 4, 5, 7)
    assert numbers_listed((7, 3, 4, 5, 9)) == "3-5,7,9"
    assert numbers_listed(()) == ""
    for wrong in (["x"], ["-1"], ["5-3"], ["0-10"], ["0-5", "0-5"]):
        assert read_numbers(wrong, 10) is None


def test_a_name_in_a_table_moves_no_cursor_and_is_no_formula() -> None:
    text = text_table(("name", "size"), [("a", "10"), ("longer", "9,000")], right=("size",))
    assert text == "name     size\na          10\nlonger  9,000"
    assert text_table(("name",), []) == "name"
    table = text_table(("layer",), [["conv\x1b[2J\nfc"]])
    assert table.splitlines()[1:] == ["conv\\x1b[2J\\nfc"]
    cells: list[str | float] = ["=1+1", "@x", "-1.5", "-x", "conv1", -2.0]
    assert [csv_cell(cell) for cell in cells] == ["'=1+1", "'@x", "-1.5", "'-x", "conv1", -2.0]
    panel = TablePanel("t", ("=a",), (("+b",), (-1,)))
    assert panel.csv() == "'=a\n'+b\n-1\n"
