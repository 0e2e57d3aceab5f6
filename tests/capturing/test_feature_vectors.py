import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import hookviz
from hookviz.capturing.feature_index import ranked
from hookviz.capturing.feature_vectors import Features


def made(vectors: Any, failed: dict[str, str] | None = None) -> Features:
    """Features with these vectors, called a, b, c, … or 0, 1, 2, …"""
    array = np.asarray(vectors).astype(np.float32)
    names = tuple("abcdefgh"[: len(array)] if len(array) < 9 else map(str, range(len(array))))
    return Features("net", "random", "0f", "conv1", "mean", names, array, failed or {})


def test_similarity_is_torchs_cosine_similarity() -> None:
    vectors = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
    expected = F.cosine_similarity(vectors[:, None].double(), vectors[None].double(), dim=2)
    np.testing.assert_allclose(made(vectors).similarity(), expected.numpy(), atol=1e-12)
    # however small the values, as in a deep network that was never trained
    np.testing.assert_allclose(
        made(vectors * 1e-30).similarity(), expected.numpy(), rtol=0, atol=1e-6
    )
    odd = made([[3, 4], [0, 0], [np.nan, 1], [np.inf, 1], [-3, -4]]).similarity()
    none = np.full((5, 5), np.nan)  # of vectors without a direction
    none[np.ix_([0, 1, 4], [0, 1, 4])] = [[1, 0, -1], [0, 0, 0], [-1, 0, 1]]
    np.testing.assert_allclose(odd, none)


def test_the_nearest_are_the_others_best_first() -> None:
    found = made([[1, 0], [1, 1], [0, 1], [1, 1], [np.nan, 0]])
    half = np.sqrt(0.5)
    nearest = found.nearest(2)
    assert [name for name, _ in nearest["a"]] == ["b", "d"]  # equal ones in their own order
    assert [name for name, _ in nearest["b"]] == ["d", "a"]
    assert [share for _, share in nearest["b"]] == pytest.approx([1, half])
    assert [name for name, _ in found.nearest(9)["a"]] == ["b", "d", "c", "e"]
    assert made([[1, 2]]).nearest() == {"a": ()}
    with pytest.raises(hookviz.HookVizError, match="count=0"):
        found.nearest(0)


def test_equal_ones_come_in_the_order_of_the_index() -> None:
    random = np.random.default_rng(0).standard_normal((1000, 137)).astype(np.float32)
    random[[3, 500, 998]] = random[7]
    found = made(random)
    shares = found.similarity_to(random[7])
    assert ranked(shares)[:4] == [3, 7, 500, 998]
    assert len({float(shares[place]) for place in (3, 7, 500, 998)}) == 1
    many = made(np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32))
    tracemalloc.start()
    nearest = many.nearest()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 3000 * 3000 * 8 / 3  # which take no square of memory
    expected = many.similarity() - 2 * np.eye(3000)
    assert all(nearest[f"{at}"][0][0] == f"{expected[at].argmax()}" for at in (0, 17, 2999))
    with pytest.raises(hookviz.HookVizError, match="136 numbers can't be compared"):
        found.similarity_to(random[7, 1:])


def test_a_file_ends_in_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made([[1, 2], [3, 4]])
    found.save(tmp_path / "new" / "vectors.NPZ")
    with np.load(tmp_path / "new" / "vectors.NPZ") as loaded:
        np.testing.assert_array_equal(loaded["vectors"], found.vectors)
    with pytest.raises(hookviz.SettingError, match=r"\.npz, \.parquet"):
        found.save(tmp_path / "vectors.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(hookviz.HookVizError, match="pip install pyarrow"):
        found.parquet()
