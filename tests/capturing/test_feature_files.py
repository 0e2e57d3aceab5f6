"""The file of an index: what is no index is refused, and nothing in it is believed or executed."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hookviz
from hookviz.capturing.feature_index import FeatureIndex
from tests.capturing.test_feature_vectors import made


def table(vectors: Any = ((1.0, 2.0),), **about: str) -> pa.Table:
    """An index as Arrow has it, with other metadata."""
    rows = pa.FixedSizeListArray.from_arrays(
        pa.array(np.asarray(vectors, np.float32).reshape(-1)), np.shape(vectors)[-1]
    )
    names = pa.array([str(row) for row in range(len(rows))])
    made = {"hookviz_index": "1", "hookviz": "0.1", "pool": "mean"} | about
    return pa.table({"name": names, "path": names, "vector": rows}).replace_schema_metadata(made)


def parquet(found: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(found, buffer, **{"compression": "none", "use_dictionary": False} | options)
    return buffer.getvalue()


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "no Parquet file"),
    "a picture": (lambda: b"\x89PNG....", "no Parquet file"),
    "a pickle": (lambda: pickle.dumps({"a": 1}), "no Parquet file"),
    "truncated": (lambda: parquet(table())[:-9], "truncated"),
    "of four bytes": (lambda: b"PAR1", "damaged"),
    "its middle is missing": (lambda: parquet(table())[:40] + b"PAR1", "damaged"),
    "its length lies": (lambda: parquet(table())[:-8] + b"\xff\xff\xff\x7fPAR1", "damaged"),
    "no index": (lambda: parquet(table().replace_schema_metadata({})), "no index of vectors"),
    "a table of pandas": (lambda: parquet(pa.table({"a": [1]})), "no index of vectors"),
    "newer": (lambda: parquet(table(hookviz_index="2", hookviz="9.9")), "by HookViz 9.9"),
    "no vectors": (lambda: parquet(table().slice(0, 0)), "holds no vectors"),
    "vectors of nothing": (
        lambda: parquet(table().set_column(2, "vector", pa.array([[]], pa.list_(pa.float32(), 0)))),
        "holds no vectors|other columns|damaged",
    ),
    "no such pool": (lambda: parquet(table(pool="max")), "how its vectors were made"),
    "a size without end": (lambda: parquet(table(size="9" * 5000)), "how its vectors were made"),
    "other columns": (lambda: parquet(table().drop_columns(["path"])), "other columns"),
    "numbers of another kind": (
        lambda: parquet(table().set_column(2, "vector", pa.array([[1.0, 2.0]]))),
        "other columns",
    ),
    "a missing vector": (
        lambda: parquet(
            table().set_column(2, "vector", pa.array([None], pa.list_(pa.float32(), 2)))
        ),
        "damaged",
    ),
    "compressed": (lambda: parquet(table(), compression="zstd"), "compressed"),
    "few bytes for many numbers": (
        lambda: parquet(table(np.zeros((4000, 500))), use_dictionary=True),
        "have no room",
    ),
    "a long name for every row": (
        lambda: parquet(
            table(np.zeros((9, 2))).set_column(0, "name", pa.array(["x" * 100_000] * 9))
        ),
        "damaged",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_index_is_refused(kind: str, tmp_path: Path) -> None:
    build, says = HOSTILE[kind]
    path = tmp_path / "index.parquet"
    path.write_bytes(build())
    with pytest.raises(hookviz.HookVizError, match=says):
        FeatureIndex.load(path)


def test_damage_anywhere_is_an_error_of_ours_or_harmless(tmp_path: Path) -> None:
    file = tmp_path / "index.parquet"
    made(np.arange(18).reshape(3, 6)).save(file)
    data = file.read_bytes()
    for place in range(0, len(data), 7):
        file.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            found = FeatureIndex.load(file).features
        except hookviz.HookVizError:
            continue
        assert found.vectors.shape == (3, 6)


def test_nothing_in_an_index_is_executed(tmp_path: Path) -> None:
    class Trap:
        """It would write a file when it is unpickled."""

        def __reduce__(self) -> Any:
            return (Path.touch, (ran,))

    ran, path = tmp_path / "ran", tmp_path / "index.parquet"
    trap = pickle.dumps(Trap())
    found = table()
    field = found.schema.field("name").with_metadata(
        {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": trap}
    )
    schema = found.schema.set(0, field).with_metadata(
        {**(found.schema.metadata or {}), b"pandas": trap, b"preprocess": trap}
    )
    path.write_bytes(parquet(found.cast(schema)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pickle, "loads", None)
        index = FeatureIndex.load(path)
    assert index.features.names == ("0",)
    assert not ran.exists()
    pickle.loads(trap)  # noqa: S301 - ours, and it does what it says
    assert ran.exists()
