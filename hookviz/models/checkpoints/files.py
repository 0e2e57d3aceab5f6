"""Read and write state dicts in files of weights; nothing that a file holds is ever run.

1. Recognise the kind of file by its first bytes, and check its description before it is loaded.
2. Load it with readers that build tensors and plain containers only.
3. Unwrap the state dict from what a training script put around it, and check its tensors.
"""

import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save
from torch import Tensor, nn

from hookviz.errors import WeightsError, shorten
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import joined, say
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
from hookviz.models.wrapping import as_model
from hookviz.paths import fault_of, path_ending_in, path_of, write_file
from hookviz.types import Model

_HEAD = 4096  # bytes at the start of a file that tell its kind
_TORCH_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # opens every file of torch.save's old format
_DEEPEST = 6  # wrappings around a state dict
USUAL_KEYS = (
    *("state_dict", "model_state_dict", "model_state", "model", "network_state_dict", "network"),
    *("net_state_dict", "net", "module", "params", "weights"),
)
"""Where training scripts put the state dict, in small letters, likeliest first."""

_AVERAGED = re.compile(r"(^|_)(ema|swa|averaged?)(_|$)|params_ema", re.IGNORECASE)
_NO_WEIGHTS = re.compile(  # what lies beside the weights and can hold tensors too
    r"optim|sched|scaler|rng|callback|loops|hyper_?param|hparams|args|config|amp$", re.IGNORECASE
)


@dataclass(frozen=True, eq=False, slots=True)
class StateDict:
    """State dict of a file that can hold several.

    Attributes:
        tensors: by name.
        key: where it lies in the file, ``model.state_dict``; empty at its top.
        others: where others lie, of at least half as many tensors.
    """

    tensors: dict[str, Tensor]
    key: str = ""
    others: tuple[str, ...] = ()


def find_state_dict(loaded: Any, name: str, key: str | None = None) -> StateDict:
    """Return the state dict inside `loaded`, unwrapped and checked.

    Args:
        loaded: content of the file.
        name: of the file, for errors.
        key: of the state dict where there are several, or the first part of its tensors' names.
    """
    if not isinstance(loaded, Mapping):
        raise WeightsError(
            say(
                "{name} holds {kind}, not a state dict (names and tensors).",
                name=name,
                kind=type(loaded).__name__,
            )
        )
    state_dicts = _state_dicts(loaded)
    if key is None:
        tensors = _unwrapped(loaded, _DEEPEST, set())
    else:
        tensors = _chosen(loaded, state_dicts, key, name)
    if not tensors:
        keys = joined(shorten(str(key), 40) for key in list(loaded)[:5]) or "nothing"
        raise WeightsError(
            say("{name} holds no tensors with names; it holds {keys}.", name=name, keys=keys)
        )
    for each, tensor in tensors.items():
        fault = _why_no_weights(tensor)
        if fault:
            raise WeightsError(
                say(
                    "{name} can't be used: {key} {fault}. Save its weights as ordinary tensors "
                    "of floating point numbers.",
                    name=name,
                    key=shorten(each),
                    fault=fault,
                )
            )
    own = next((at for at, each in state_dicts.items() if _is_same(each, tensors)), key or "")
    return StateDict(
        OrderedDict((key, tensor.detach()) for key, tensor in tensors.items()),
        own,
        tuple(k for k, each in state_dicts.items() if k != own and 2 * len(each) >= len(tensors)),
    )


def _state_dicts(loaded: Mapping[Any, Any]) -> dict[str, dict[str, Tensor]]:
    """Return every state dict in a file by where it lies: at least two tensors with names."""
    by_path: dict[str, dict[str, Tensor]] = {}
    queue: list[tuple[str, Mapping[Any, Any]]] = [("", loaded)]
    visited: set[int] = set()
    for path, node in queue:
        if id(node) in visited or path.count(".") >= _DEEPEST:
            continue
        visited.add(id(node))
        tensors = _tensors_of(node)
        if len(tensors) > 1:
            by_path[path] = tensors
        for key, value in node.items():
            if isinstance(value, Mapping) and isinstance(key, str) and not _NO_WEIGHTS.search(key):
                queue.append((f"{path}.{key}".removeprefix("."), value))
    return by_path


def _chosen(
    loaded: Mapping[Any, Any], state_dicts: Mapping[str, dict[str, Tensor]], key: str, name: str
) -> dict[str, Tensor]:
    """Return the state dict under a key, or the tensors whose names begin with it."""
    under = [each for path, each in state_dicts.items() if f"{path}.".startswith(f"{key}.")]
    if under:
        return under[0]
    tensors = _unwrapped(loaded, _DEEPEST, set())
    chosen = {each: tensors[each] for each in tensors if each.startswith(f"{key}.")}
    if not chosen:
        tops = dict.fromkeys(each.partition(".")[0] for each in tensors)
        known = [path for path in state_dicts if path] or list(tops)
        raise WeightsError(
            say(
                "{name} has no weights under key={key!r}; it has {keys}.",
                name=name,
                key=shorten(key),
                keys=joined(shorten(repr(each), 40) for each in known[:5]) or "none",
            )
        )
    return chosen


def _tensors_of(node: Mapping[Any, Any]) -> dict[str, Tensor]:
    return {k: v for k, v in node.items() if isinstance(k, str) and isinstance(v, Tensor)}


def _is_same(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    return some.keys() == others.keys() and all(some[key] is others[key] for key in some)


def _unwrapped(node: Mapping[Any, Any], depth: int, visited: set[int]) -> dict[str, Tensor]:
    """Return the tensors under the likeliest key, else the most tensors that lie together.

    Real state dicts hold no dicts, so a dict under a reporter name goes before tensors beside it,
    such as a best accuracy.
    """
    if depth == 0 or id(node) in visited:
        return {}
    visited.add(id(node))
    inner = {
        key.casefold(): value
        for key, value in node.items()
        if isinstance(key, str) and isinstance(value, Mapping)
    }
    for key in USUAL_KEYS:
        if key in inner:
            tensors = _unwrapped(inner.pop(key), depth - 1, visited)
            if tensors:
                return tensors
    best = _tensors_of(node)
    averaged = [inner.pop(key) for key in list(inner) if _AVERAGED.search(key)]
    for key, child in inner.items():
        tensors = {} if _NO_WEIGHTS.search(key) else _unwrapped(child, depth - 1, visited)
        best = max(best, tensors, key=len)
    for child in averaged:
        tensors = _unwrapped(child, depth - 1, visited)
        if len(tensors) > len(best):
            return tensors
    return best


def _why_no_weights(tensor: Tensor) -> str:
    """Return why a tensor can't be weights, or an empty string."""
    if tensor.is_nested or tensor.layout != torch.strided:
        return say("is a sparse or nested tensor")
    if tensor.is_quantized:
        return say("is quantised")
    if tensor.is_meta:
        return say("has a shape and no values")
    if tensor.is_complex():
        return say("holds complex numbers")
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        return say("claims {count:,} values, more than the file holds for it", count=tensor.numel())
    return ""


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
        key: of one of several state dicts, see `find_state_dict`.

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
        return find_state_dict(_from_pickle(stream, name, _zeroing_loader(size)), name, key)
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


def _zeroing_loader(most: int) -> Callable[[torch.UntypedStorage, str], torch.UntypedStorage]:
    """Return a storage loader for torch that zeroes memory, and allows `most` bytes of it in all.

    A file of the old format states its memory, and need not fill it: the rest would be the values
    of freed memory.
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


SUFFIX = ".safetensors"


def weights_bytes(model: Model) -> bytes:
    """Encode every parameter and buffer under its name as the bytes of a safetensors file.

    What several layers share is written once for each.
    """
    with private_replica(model) as network:
        tensors = {
            name: tensor.detach().to("cpu", memory_format=torch.contiguous_format, copy=True)
            for name, tensor in network.state_dict().items()
            if isinstance(tensor, Tensor)
        }
    data: bytes = save(tensors, {"format": "pt", "model": model.name, "weights": model.weights})
    return data


def save_weights(model: Model | nn.Module, path: str | Path) -> Path:
    """Write a model's weights as safetensors, and return the path.

    A model of the catalog is had again, with the same scores to the bit, by
    ``load_model(model.name, path)``; a network of one's own by ``load_state_dict`` with what
    ``safetensors.torch.load_file`` reads.

    Args:
        model: from `load_model`, `wrap` or `prune`, or a module of one's own.
        path: ends in ``.safetensors``.

    Raises:
        WeightsError: it ends in something else, or can't be written.

    >>> import tempfile
    >>> model = hookviz.prune(hookviz.load_model("shapesnet"), 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = hookviz.save_weights(model, f"{folder}/half.safetensors")
    ...     again = hookviz.load_model("shapesnet", path)
    >>> again.digest == model.digest
    True
    """
    file = path_ending_in(path, (SUFFIX,), WeightsError)
    write_file(file, weights_bytes(as_model(model)), WeightsError)
    return file
