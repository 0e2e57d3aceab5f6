"""Bring arrays and facts out of a confined process, in a file of memory that nobody can change.

The file holds the arrays, each at a multiple of a page, then JSON that declares them, then the
JSON's length in 8 bytes. Whoever takes it counts everything first: its writer may be hostile.
"""

import fcntl
import json
import math
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz import shallow_json

_DTYPES = frozenset(
    {
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    }
)
_LENGTH = 8  # bytes, at the end, that tell how long the JSON is
_MOST_JSON = 8 * 1024 * 1024
_MOST_AXES = 32
_MAPPED = 8 * 1024 * 1024  # bytes from which a map is worth the descriptor that it holds open
_SHARED = mmap.MAP_SHARED | mmap.MAP_POPULATE  # all pages at once, not one fault each
_PAGE = mmap.ALLOCATIONGRANULARITY


class BadAnswerError(Exception):
    """An answer declares what it does not hold: its writer is broken, or lies."""


class AnswerWriter:
    """Writes an answer into a file of memory, in the confined process."""

    def __init__(self, file: int) -> None:
        """Begin the answer in an open, empty file."""
        self._file, self._end = file, 0
        self._declared: list[dict[str, Any]] = []

    def array(self, name: str, shape: Iterable[int], dtype: str) -> NDArray[Any]:
        """Return an array to be filled, of zeros; it is the file itself, and costs no copy."""
        sides = [int(side) for side in shape]
        size = math.prod(sides) * np.dtype(dtype).itemsize
        at = self._declare(name, sides, dtype, size)
        if not size:
            return np.empty(sides, dtype)
        os.ftruncate(self._file, at + size)
        room = mmap.mmap(self._file, size, _SHARED, offset=at)
        return np.frombuffer(room, dtype).reshape(sides)

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Write an array that there is; of many small ones none takes a map."""
        at = self._declare(name, list(values.shape), values.dtype.name, values.nbytes)
        self._put(at, np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    def finish(self, **header: Any) -> None:
        """Write the header after the arrays; the answer is whole then."""
        text = json.dumps({**header, "arrays": self._declared}).encode()
        self._put(self._end, text + len(text).to_bytes(_LENGTH, "little"))

    def _declare(self, name: str, shape: list[int], dtype: str, size: int) -> int:
        at = -(-self._end // _PAGE) * _PAGE
        self._declared.append({"name": name, "shape": shape, "dtype": dtype, "at": at})
        self._end = at + size
        return at

    def _put(self, at: int, values: bytes | memoryview) -> None:
        left = memoryview(values)
        while left:
            written = os.pwrite(self._file, left, at)
            at, left = at + written, left[written:]


def create(name: str) -> int:
    """Return a new file of memory that can be sealed."""
    return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def seal(file: int) -> None:
    """Let nobody change the file any more.

    Raises:
        OSError: somebody has it mapped to write into.
    """
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)


def take(file: int, most_bytes: int) -> tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]:
    """Seal an answer, count it, and return its header and its arrays.

    Raises:
        BadAnswerError: it is larger than `most_bytes`, or declares what is not there.
    """
    seal(file)
    size = os.fstat(file).st_size
    if not _LENGTH <= size <= most_bytes:
        raise BadAnswerError(f"an answer of {size} bytes")
    length = int.from_bytes(os.pread(file, _LENGTH, size - _LENGTH), "little")
    end = size - _LENGTH - length
    if length > _MOST_JSON or end < 0:
        raise BadAnswerError(f"a header of {length} bytes")
    try:
        header = shallow_json.parse(os.pread(file, length, end))
        declared = [_Declared.read(each, end) for each in header["arrays"]]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise BadAnswerError("a header of no sense") from error
    if not declared:
        return header, {}
    if sum(each.size for each in declared) > end:
        raise BadAnswerError("arrays over each other")
    data = _bytes_of(file, size)
    return header, {each.name: each.of(data) for each in declared}


@dataclass(frozen=True, slots=True)
class _Declared:
    """Array as the header declares it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    at: int
    size: int

    @classmethod
    def read(cls, facts: Any, end: int) -> "_Declared":
        name, shape, dtype, at = facts["name"], facts["shape"], facts["dtype"], facts["at"]
        if dtype not in _DTYPES or len(shape) > _MOST_AXES or not isinstance(name, str):
            raise ValueError("an array of no kind")
        if any(type(number) is not int or number < 0 for number in (*shape, at)):
            raise ValueError("no sizes")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if at % _PAGE or at + size > end:
            raise ValueError("an array beyond the end")
        return cls(name, tuple(shape), dtype, at, size)

    def of(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        values = data[self.at : self.at + self.size].view(self.dtype).reshape(self.shape)
        values.setflags(write=False)
        return values


def _bytes_of(file: int, size: int) -> NDArray[np.uint8]:
    """Return the bytes of a sealed file: a large one mapped, which holds a descriptor open."""
    if size >= _MAPPED:
        return np.frombuffer(mmap.mmap(file, size, _SHARED, mmap.PROT_READ), np.uint8)
    values = np.empty(size, np.uint8)
    if os.preadv(file, [values.data], 0) != size:
        raise BadAnswerError("an answer that is cut")
    return values
