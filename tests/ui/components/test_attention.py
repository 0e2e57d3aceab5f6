"""What goes to the browser of an attention: numbers to three digits, and never more than may be."""

import json
from typing import Any

import numpy as np
import pytest

from hookviz.drawing.attention_panel import CLASS_TOKEN, AttentionPanel, FixedMap
from hookviz.ui.components.attention import MOST_BYTES, attention_facts

HEADS, TOKENS = 3, 17


def panel(head: int | None = None, query: int = 5) -> AttentionPanel:
    scores = np.random.default_rng(0).normal(size=(1, HEADS, TOKENS, TOKENS)) * 4
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    cells = np.arange(-1, TOKENS - 1)[None]
    return AttentionPanel(
        *("title", np.zeros((4, 4, 3), np.uint8), "alt", "caption"),
        photograph=np.zeros((8, 8, 3), np.uint8),
        grid=(4, 4),
        weights=weights.astype(np.float32),
        queries=cells,
        keys=cells,
        class_token=0,
        fixed=(FixedMap("rollout", np.ones((4, 4), np.float32)),),
        query=query,
        head=head,
    )


def sent(of: AttentionPanel, most_bytes: int = MOST_BYTES) -> tuple[dict[str, Any], np.ndarray]:
    facts, file = attention_facts(of, "inferno", most_bytes)
    json.dumps(facts)
    begin, end = facts["weights"]
    halves = np.frombuffer(file[begin:end], "<f2").astype(np.float64) / 1024
    windows, queries = np.shape(facts["queries"])
    return facts, halves.reshape(facts["heads"], windows, queries, TOKENS)


def test_all_heads_and_their_mean_are_sent_to_three_digits() -> None:
    of = panel(head=2)
    facts, weights = sent(of)
    assert facts["names"] == ["mean", "head 0", "head 1", "head 2"]
    assert facts["head"] == 3
    np.testing.assert_allclose(weights[1:, 0], of.weights[0], rtol=5e-4, atol=1e-7)
    np.testing.assert_allclose(weights[0, 0], of.weights[0].mean(0), rtol=5e-4, atol=1e-7)
    assert len(facts["ramp"]) > 200
    others = [sent(panel())[0], sent(panel(2, 6))[0]]
    assert len({each["key"] for each in (facts, *others)}) == 3
    assert facts["queries"] == of.queries.tolist()


@pytest.mark.parametrize("head", [None, 1])
def test_above_the_bytes_the_mean_and_the_chosen_head_are_sent(head: int | None) -> None:
    most = 2 * TOKENS**2 * 2
    facts, weights = sent(panel(head), most)
    assert facts["names"] == ["mean", *([] if head is None else ["head 1"])]
    assert facts["names"][facts["head"]] == ("mean" if head is None else "head 1")
    assert weights.astype("<f2").nbytes <= most
    assert "More" in facts["caption"]


@pytest.mark.parametrize("query", [5, CLASS_TOKEN])
def test_above_that_what_one_patch_asks_is_sent(query: int) -> None:
    of = panel(query=query)
    facts, weights = sent(of, 500)
    assert facts["names"] == ["mean", "head 0", "head 1", "head 2"]
    assert facts["queries"] == [[query]]
    np.testing.assert_allclose(weights[1:, 0, 0], of.weights[0, :, query + 1], rtol=5e-4, atol=1e-7)
