"""Read the state dict in a file of weights without running anything that the file holds."""

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor

from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import say
from hookviz.models.checkpoints.guards import (
    MOST_DESCRIPTION,
    TOO_MANY,
    check_archive,
    check_header,
    check_pickles,
    damaged,
    kind_of,
    unreadable,
    unsafe_file_error,
)
from hookviz.models.checkpoints.unwrapping import StateDict, find_state_dict
from hookviz.paths import fault_of, path_of

_HEAD = 4096  # bytes at the start of a file that tell its kind
_TORCH_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # opens every file of torch.save's old format


def read_state_dict(source: Path | bytes, name: str = "") -> dict[str, Tensor]:
    """Read the state dict in a file as `read_checkpoint` does.

    Raises:
        WeightsError: as `read_checkpoint`.
    """
    return read_checkpoint(source, name).tensors


def read_checkpoint(source: Path | bytes, name: str = "", key: str | None = None) -> StateDict:
    """Read the state dict in a file, whatever wraps it; nothing in the file is ever executed.

    The kind of file is told by its content. Tensors keep the type and the names that they have in
    the file, and their memory is never larger than the file unpacked.

    Args:
        source: the file, or its bytes: safetensors, or what torch.save wrote, old format or new.
        name: what to call it in errors; the path's name by default.
        key: which is taken of several, see `find_state_dict`.

    Raises:
        WeightsError: there is no such file, it is of another kind, damaged, or holds objects that
            only code could bring back.
    """
    name = shorten(name or (source.name if isinstance(source, Path) else say("the checkpoint")))
    if isinstance(source, bytes):
        return _read(io.BytesIO(source), name, key)
    try:
        source = path_of(source)
        if fault := fault_of(source):
            raise unreadable(name, say("it is {fault}", fault=fault))
        with source.open("rb") as stream:
            return _read(stream, name, key)
    except FileNotFoundError as error:
        raise WeightsError(
            say(
                'There is no checkpoint {source!r}; weights are "pretrained", "random" or '
                "the path of a file.",
                source=shorten(str(source), 200),
            )
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise unreadable(name, getattr(error, "strerror", None) or str(error)) from error


def _read(stream: BinaryIO, name: str, key: str | None) -> StateDict:
    head = stream.read(_HEAD)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if not head:
        raise unreadable(name, say("it is empty"))
    if head.startswith(b"PK"):
        check_archive(stream, size, name)
        return find_state_dict(_from_pickle(stream, name), name, key)
    if _TORCH_MAGIC in head[:40]:
        check_pickles(stream, 5, name)
        return find_state_dict(_from_pickle(stream, name, _zeroed(size)), name, key)
    length = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and length < 1 << 40:
        return find_state_dict(_from_safetensors(stream, length, size, name), name, key)
    raise unreadable(name, kind_of(head, name))


def _from_safetensors(stream: BinaryIO, length: int, size: int, name: str) -> Mapping[str, Tensor]:
    if length + 8 > size:
        raise unreadable(
            name,
            say(
                "it is cut short: its header alone should take {length:,} bytes, and the "
                "file has {size:,}",
                length=length,
                size=size,
            ),
        )
    if length > MOST_DESCRIPTION:
        raise unreadable(name, say(TOO_MANY))
    stream.seek(8)
    check_header(stream.read(length), name)
    stream.seek(0)
    try:
        state_dict: Mapping[str, Tensor] = load_safetensors(stream.read())
    except Exception as error:  # whatever a damaged file makes the library raise
        raise damaged(name, error) from error
    return OrderedDict(sorted(state_dict.items()))  # it comes in another order each time


def _zeroed(most: int) -> Callable[[torch.UntypedStorage, str], torch.UntypedStorage]:
    """Return a storage loader for torch that zeroes memory, and allows `most` bytes of it in all.

    A file of the old format says how much memory it wants, and need not fill it. What lies there
    then is what others left.
    """
    left = most

    def zeroed(storage: torch.UntypedStorage, _location: str) -> torch.UntypedStorage:
        nonlocal left
        left -= storage.nbytes()
        if left < 0:
            raise ValueError("it claims more values than it holds")
        torch.empty(0, dtype=torch.uint8).set_(storage).zero_()
        return storage

    return zeroed


def _from_pickle(stream: BinaryIO, name: str, location: Any = "cpu") -> Any:
    """Load what torch.save wrote; torch's own reader builds tensors and plain containers only."""
    stream.seek(0)
    try:
        return torch.load(stream, map_location=location, weights_only=True)
    except pickle.UnpicklingError as error:
        raise unsafe_file_error(name, str(error)) from error
    except Exception as error:  # whatever a damaged file makes torch raise
        raise damaged(name, error) from error
