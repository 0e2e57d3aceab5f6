"""The file itself: nothing in it runs but its own script, whatever it is given."""

import base64
import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hookviz.standalone.client_page import (
    CLIENT,
    LANGUAGE,
    THEME,
    columns,
    halves,
    packed,
    page_html,
    varied,
    whole_floats,
)
from tests.node import of_client, run_node
from tests.standalone.pages import unpacked

FACTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", min_size=1), inner),
    max_leaves=8,
)


def test_each_language_and_each_theme_is_had_again() -> None:
    said = [
        [{"rows": [light, theme], "n": 3, "of": {language: 1}} for theme in ("white", "black")]
        for language, light in (("en", "red"), ("zh", "红"))
    ]
    by_theme = [varied(LANGUAGE, [said[0][theme], said[1][theme]]) for theme in (0, 1)]
    facts = json.loads(json.dumps(varied(THEME, by_theme)))
    wanted = [{LANGUAGE: language, THEME: theme} for language in (0, 1) for theme in (0, 1)]
    found = of_client(
        str(CLIENT / "recorded.js"), "wanted.map((each) => it.chosen(facts, each))", **locals()
    )
    assert found == [*said[0], *said[1]]


@given(st.lists(FACTS, min_size=2, max_size=2))
def test_what_is_the_same_stands_once(variants: list[Any]) -> None:
    facts = varied(LANGUAGE, variants)
    assert (facts == variants[0]) or LANGUAGE in json.dumps(facts)
    assert varied(LANGUAGE, [variants[0]] * 2) == variants[0]


def test_true_is_not_one_and_what_json_lacks_is_null() -> None:
    assert varied(LANGUAGE, [True, 1]) == {LANGUAGE: [True, 1]}
    facts = {"a": [1.0, float("nan"), (float("inf"), "x")], "b": 2}
    assert unpacked(packed(facts)) == {"a": [1.0, None, [None, "x"]], "b": 2}


def test_every_row_of_columns_is_had_again() -> None:
    rows = [
        {"a": 1, "b": [1, {"c": "x"}], "d": None, "e": [], "same": "s", "some": [1]},
        {"a": 2, "b": [2, {"c": "y"}], "d": 0.5, "e": [], "same": "s", "some": [1, 2]},
        {"a": 2, "b": [2, {"c": "y"}], "d": "t", "e": [], "same": "s", "some": {}},
    ]
    node = columns(rows)
    assert node["fields"]["same"] == {"same": "s"}
    found = of_client(
        str(CLIENT / "recorded.js"), "[0, 1, 2].map((at) => it.rowOf(node, at))", node=node
    )
    assert found == rows


def kept(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """The values as the page has them, None as NaN."""
    packed_values = halves(values)
    script = """
const { blocksOf } = await import(CLIENT + "blocks.js");
const { halves } = await import(CLIENT + "halves.js");
const blocks = blocksOf(async () => TEXT);
const values = halves(await blocks.unpacked("any"), POWER);
console.log(JSON.stringify(Array.from(values, String)));
"""
    constants = {
        "CLIENT": CLIENT.as_uri() + "/",
        "TEXT": packed_values.text,
        "POWER": packed_values.power,
    }
    given_constants = "".join(f"const {k} = {json.dumps(v)};\n" for k, v in constants.items())
    texts = json.loads(run_node(given_constants + script))
    words = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    return np.array([words[each] if each in words else float(each) for each in texts])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_values_are_kept_to_the_rounding_of_float16_whatever_their_size(scale: float) -> None:
    values = np.float32(scale) * np.random.default_rng(1).normal(size=(2, 5, 7)).astype(np.float32)
    found = kept(values)
    flat = values.reshape(-1).astype(np.float64)
    assert np.abs(found / flat - 1).max() <= 2**-11
    assert halves(values).error == pytest.approx(np.abs(found - flat).max(), rel=1e-3)
    assert halves(values).error > 0


def test_what_is_no_number_stays_what_it_is() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -1.5, 7e4], np.float32)
    np.testing.assert_array_equal(kept(values)[:5], values[:5])
    assert kept(values)[5] == pytest.approx(7e4, rel=2**-11)


@pytest.mark.parametrize("values", [[0.0, 0.0], [np.nan, np.nan]])
def test_values_without_a_size_are_kept(values: list[float]) -> None:
    np.testing.assert_array_equal(kept(np.array(values, np.float32)), values)
    assert halves(np.array(values, np.float32)).error == 0


def test_float32_is_kept_to_the_last_bit() -> None:
    values = np.random.default_rng(2).normal(size=9).astype(np.float32)
    found = of_client(
        str(CLIENT / "halves.js"),
        "[...it.wholeFloats(await (await import(blocks)).blocksOf(async () => text).unpacked(''))]",
        blocks=(CLIENT / "blocks.js").as_uri(),
        text=whole_floats(values),
    )
    assert np.array(found, np.float32).tobytes() == values.tobytes()


BAD = "</title><script>bad()</script>\"'<img src=x onerror=bad()>"


def between(html: str, begin: str, end: str) -> str:
    return html.partition(begin)[2].partition(end)[0]


def hashed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_script_and_the_style_and_nothing_from_outside() -> None:
    html = page_html("a page", {"page": packed({})}, {})
    policy = between(html, 'http-equiv="Content-Security-Policy" content="', '"')
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    script, style = between(html, "<script>", "</script>"), between(html, "<style>", "</style>")
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hashed(script)}'",
        "style-src": f"'sha256-{hashed(style)}'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert html.index("Content-Security-Policy") < html.index("<style>")
    assert re.findall(r"https?://\S+", html) == []
    assert html.startswith("<!doctype html>\n")
    html = page_html("a page", {"first": packed(1)}, {"last": packed(2)})
    places = [html.index(part) for part in ('id="first"', "<script>", 'id="last"')]
    assert places == sorted(places)


def test_no_text_becomes_markup() -> None:
    html = page_html(BAD, {"page": packed({"name": BAD})}, {"rest": packed(BAD)})
    assert "bad()</script>" not in html
    assert html.count("<script>") == html.count("<title>") == html.count("<h2>") == 1
    assert "&lt;script&gt;bad()" in between(html, "<title>", "</title>")
    with pytest.raises(AssertionError, match="page"):
        page_html("a page", {}, {"page": "</script>"})
