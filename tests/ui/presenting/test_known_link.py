from urllib.parse import parse_qsl

import pytest

import hookviz
from hookviz.images.samples import samples
from hookviz.lenses.contract.running import list_lenses
from hookviz.ui.presenting.known_link import (
    LONGEST,
    LONGEST_VALUE,
    for_the_class,
    known_part,
    parameters,
    read_query,
)
from hookviz.ui.state import ALL_FAMILIES
from tests.ui.link_parameters import in_code
from tests.ui.test_threats import VIEW


def test_every_parameter_of_the_page_is_known() -> None:
    assert set(VIEW) <= parameters()
    missing = in_code() - parameters() - {"follow", "class"}  # a person's part in a class
    assert missing == set()
    for lens in list_lenses():
        assert {f"{lens.slug}-{each.name}" for each in lens.parameters} <= parameters()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("modle=x", r"'modle', which this page does not know\. The nearest.* is model\."),
        ("redirect=https://evil.example", "'redirect', which this page does not know"),
        ("embed=true", "'embed', which this page does not know"),
        (f"channel={'3' * (LONGEST_VALUE + 1)}", "says of channel has 1,001 letters"),
        ("a=" + "x" * LONGEST, f"has {LONGEST + 2:,} letters, and {LONGEST:,} is the most"),
        ("<img src=x>", "which this page does not know"),
    ],
)
def test_what_a_link_may_not_hold_is_named(query: str, words: str) -> None:
    with pytest.raises(hookviz.HookVizError, match=words):
        read_query(query)
    good = {"model": "ShapesNet", "channel": "3", "cell": "1,2"}
    assert read_query("?model=ShapesNet&channel=3&cell=1,2") == good
    assert read_query("") == {}


def test_what_is_so_anyway_is_not_in_the_link_for_the_class() -> None:
    said = {
        "model": "ShapesNet",
        "sort": "index",
        "scale": "automatic",
        "layers": "conv",
        "family": ALL_FAMILIES,
        "sample": samples()[0].name,
        "layer": "stage1.first.conv",
        "cell": "3,4,16,16",
        "present": "1",
    }
    assert for_the_class(said) == "model=ShapesNet&layer=stage1.first.conv&cell=3,4,16,16"
    assert for_the_class({"sort": "mean", "lang": "zh-CN"}) == "sort=mean&lang=zh-CN"
    own = {"image": "Upload", "upload": "abc", "channel": "3"}
    assert for_the_class(own) == "channel=3"
    assert for_the_class({"image": "Live"}) == "image=Live"  # which opens one's own camera


def test_strange_parts_of_a_browsers_link_are_left_out() -> None:
    found = known_part("?utm_source=x&channel=3&next=//evil.example&lens=grad-cam%26x%3D1")
    assert found == {"channel": "3", "lens": "grad-cam&x=1"}
    query = for_the_class(found)
    assert dict(parse_qsl(query)) == found  # and what stands in a value stays there
    with pytest.raises(hookviz.HookVizError, match="letters"):
        known_part(f"?{'made=x&' * 1000}a={'x' * 2000}")
