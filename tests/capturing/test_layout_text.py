"""The words for how a layer lies."""

import pytest

from hookviz.capturing.layout_text import layout_text
from hookviz.types import LayerInfo


@pytest.mark.parametrize(
    ("layout", "prefix", "shape", "words"),
    [
        ("channels first", 0, (64, 7, 7), "channels first"),
        ("channels last", 0, (1536, 14, 14), "channels last: 14×14; 1,536 channels"),
        ("tokens", 0, (384, 14, 14), "14×14 patches; 384 channels"),
        ("tokens", 5, (384, 14, 14), "14×14 patches and 5 other tokens; 384 channels"),
        ("windows", 0, (96, 56, 56), "windows of 56×56; 96 channels"),
        ("unknown", 0, (3, 17, 8), "unknown: no map"),
        ("", 0, (1000,), ""),
    ],
)
def test_a_layout_is_said_in_words(
    layout: str, prefix: int, shape: tuple[int, ...], words: str
) -> None:
    options = {"parameters": 0, "layout": layout, "prefix_tokens": prefix}
    layer = LayerInfo("a", "Linear", 0, "a", 1, (3, 8, 8), shape, **options)  # type: ignore[arg-type]
    assert layout_text(layer) == words
