"""Write vectors of images to a Parquet file, and read one without trusting anything in it.

The numbers stand in it as they are, neither compressed nor coded, so a file is never smaller than
what it holds: how much memory reading it takes is known before it is read.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hookviz
from hookviz.errors import HookVizError, nearest_names, shorten
from hookviz.paths import fault_of

_FORMAT = 1  # of the columns and the metadata; a reader takes those up to its own
_MARK, _MADE_BY = "hookviz_index", "hookviz"
_MAGIC = b"PAR1"
_LONGEST = 4096  # letters of a name or a path
_FLOAT_BYTES = 4


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Names, paths and vectors that a Parquet file holds, and how they were made.

    Attributes:
        names: what the images are called, ``(N,)``.
        paths: the way to each from the file's folder, as the file says; empty where there is none.
        vectors: float32, ``(N, D)``, read-only.
        about: the metadata.
    """

    names: tuple[str, ...]
    paths: tuple[str, ...]
    vectors: NDArray[np.float32] = field(repr=False)
    about: Mapping[str, str]


def written(
    names: Sequence[str],
    paths: Sequence[str],
    vectors: NDArray[np.float32],
    about: Mapping[str, Any],
) -> bytes:
    """Return a Parquet file with the columns ``name``, ``path`` and ``vector``, as bytes.

    Raises:
        HookVizError: pyarrow is not installed.
    """
    pa, parquet = _pyarrow("take the NPZ file, which has the same numbers")
    listed = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.reshape(-1), pa.float32()), vectors.shape[1]
    )
    columns = {
        "name": pa.array(list(map(_text, names)), pa.string()),
        "path": pa.array(list(map(_text, paths)), pa.string()),
        "vector": listed,
    }
    marks = {_MARK: _FORMAT, _MADE_BY: hookviz.__version__}
    metadata = {key: str(value) for key, value in {**marks, **about}.items()}
    table = pa.table(columns).replace_schema_metadata(metadata)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="none", use_dictionary=False)
    return buffer.getvalue()


def read(path: Path) -> Table:
    """Read a file that `written` wrote.

    Raises:
        HookVizError: there is no such file, it is no index or one of a newer HookViz, it is
            truncated or damaged, or says that it holds more than it has room for.
    """
    name = repr(shorten(path.name))
    _check_ends(path, name)
    pa, parquet = _pyarrow("make it anew as NPZ")
    try:
        with parquet.ParquetFile(path) as file:
            about = {
                key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
                for key, value in (file.schema_arrow.metadata or {}).items()
            }
            _check_mark(about, name)
            shape = _shape(file, pa, path, name)
        with parquet.ParquetFile(path, read_dictionary=["name", "path"]) as file:
            return _table(file, shape, about)
    except HookVizError:
        raise
    except Exception as error:  # on broken bytes Arrow raises whatever its line of code raises
        reason = shorten(str(error).partition("\n")[0], 120) or type(error).__name__
        raise HookVizError(f"{name} is damaged ({reason}). {_ANEW}") from error


_ANEW = "Make the index anew: hookviz features photos/ -o index.parquet."


def _check_ends(path: Path, name: str) -> None:
    """Refuse a file that does not begin and end as Parquet files do."""
    if not path.is_file():
        fault = fault_of(path)
        known = path.parent.glob("*.parquet") if path.parent.is_dir() else ()
        near = nearest_names(path.name, [file.name for file in known])
        hint = f"Did you mean {near[0]!r}?" if near else _ANEW
        if fault:
            raise HookVizError(f"{name} is {fault}, and no index of vectors. {hint}")
        raise HookVizError(f"There is no index {shorten(str(path))!r}. {hint}")
    with path.open("rb") as file:
        begins = file.read(len(_MAGIC))
        file.seek(-min(len(_MAGIC), path.stat().st_size), 2)
        ends = file.read()
    if begins != _MAGIC:
        raise HookVizError(f"{name} is no index of vectors: it is no Parquet file. {_ANEW}")
    if ends != _MAGIC:
        raise HookVizError(f"{name} is truncated: its end is missing. {_ANEW}")


def _check_mark(about: Mapping[str, str], name: str) -> None:
    mark = about.get(_MARK, "")
    if not (mark.isascii() and mark.isdigit() and len(mark) < 10):
        raise HookVizError(
            f"{name} is a Parquet file but no index of vectors: it doesn't say of which model and "
            f"layer they are. {_ANEW}"
        )
    if int(mark) > _FORMAT:
        made_by = shorten(about.get(_MADE_BY, ""), 20) or "a newer one"
        raise HookVizError(
            f"{name} was made by HookViz {made_by}, and this is HookViz {hookviz.__version__}, "
            "which can't read it yet. Use that one, or make the index anew with this one."
        )


def _shape(file: Any, pa: Any, path: Path, name: str) -> tuple[int, int]:
    """Return how many vectors of how many numbers a file holds, which it must have room for."""
    schema, metadata = file.schema_arrow, file.metadata
    kinds = dict(zip(schema.names, schema.types, strict=True))
    kind = kinds.get("vector")
    if (
        kind is None
        or not {"name", "path"} <= set(kinds)
        or not pa.types.is_fixed_size_list(kind)
        or kind.value_type != pa.float32()
    ):
        raise HookVizError(
            f"{name} has other columns than an index: name, path, and vector with float32 numbers. "
            f"{_ANEW}"
        )
    count, size = int(metadata.num_rows), int(kind.list_size)
    if not count or not size:
        raise HookVizError(f"{name} holds no vectors. {_ANEW}")
    codecs = {
        metadata.row_group(group).column(column).compression
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    }
    if codecs != {"UNCOMPRESSED"}:
        raise HookVizError(
            f"{name} is compressed, and HookViz writes no such index: nobody knows how much memory "
            f"it would take. {_ANEW}"
        )
    room = path.stat().st_size
    if count < 0 or size < 0 or count * size * _FLOAT_BYTES > room:
        raise HookVizError(
            f"{name} says that it holds {count:,} vectors of {size:,} numbers, for which its "
            f"{room:,} bytes have no room. {_ANEW}"
        )
    return count, size


def _table(file: Any, shape: tuple[int, int], about: Mapping[str, str]) -> Table:
    vectors = np.empty(shape, np.float32)
    texts: dict[str, list[str]] = {"name": [], "path": []}
    done = 0
    for batch in file.iter_batches(max(1, (1 << 22) // shape[1]), columns=[*texts, "vector"]):
        column = batch.column("vector")
        numbers = column.flatten()
        if column.null_count or numbers.null_count:
            raise ValueError("a vector is missing")
        rows = numbers.to_numpy(zero_copy_only=False).reshape(-1, shape[1])
        vectors[done : done + len(rows)] = rows  # of another number than was said: an error
        done += len(rows)
        for name in texts:
            texts[name] += _texts(batch.column(name))
    if done != shape[0]:
        raise ValueError(f"{done:,} vectors in place of {shape[0]:,}")
    vectors.setflags(write=False)
    return Table(tuple(texts["name"]), tuple(texts["path"]), vectors, about)


def _texts(column: Any) -> list[str]:
    """Return the texts of a column, one object for equal ones: few bytes can stand for many."""
    known = [str(text or "") for text in column.dictionary.to_pylist()]
    if any(len(text) > _LONGEST for text in known):
        raise ValueError(f"a name of more than {_LONGEST:,} letters")
    return [known[index] if index is not None else "" for index in column.indices.to_pylist()]


def _text(text: str) -> str:
    """Return a name that UTF-8 can hold: a file's can have bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _pyarrow(otherwise: str) -> tuple[Any, Any]:
    try:  # takes a while, and few need it
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise HookVizError(
            "Parquet files are written and read by pyarrow, which is not installed; pip install "
            f"pyarrow, or {otherwise}."
        ) from error
