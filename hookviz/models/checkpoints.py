"""A file of weights → the state dict in it, without running anything that the file holds."""

import io
import pickle
import pickletools
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor

from hookviz.errors import WeightsError, shorten

_HEAD = 4096  # bytes at the start of a file that tell its kind
_MOST_INFLATED = 10  # times its size that a zip may unpack to; torch.save does not compress
_MOST_PICKLE = 4_000_000  # bytes that describe the tensors; 1,000 tensors take 0.1 MB
_DEEPEST = 6  # wrappings around a state dict
_TOO_MANY = "it describes more tensors than any network has"
_MAKERS = re.compile(  # torch's reader calls these for a file; they take memory that nothing fills
    r"(__builtin__|builtins) bytearray$"
    r"|torch[\w.]* (\w*Tensor|\w*ypedStorage|_rebuild_(device|nested|wrapper)\w*)$"
)
_TORCH_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # opens every file of torch.save's old format
_WORKS = "HookViz reads .safetensors files, and state dicts saved by torch.save (.pt, .pth)"

_PLAIN = (  # where training scripts put the state dict, likeliest first
    *("state_dict", "model_state_dict", "model_state", "model", "network_state_dict", "network"),
    *("net_state_dict", "net", "module", "params", "weights"),
)
_AVERAGED = re.compile(r"(^|_)(ema|swa|averaged?)(_|$)|params_ema", re.IGNORECASE)
_NO_WEIGHTS = re.compile(  # what lies beside the weights and can hold tensors too
    r"optim|sched|scaler|rng|callback|loops|hyper_?param|hparams|args|config|amp$", re.IGNORECASE
)

_SIGNS: tuple[tuple[int, bytes, str], ...] = (  # offset, bytes, and what kind of file has them
    (
        0,
        b"version https://git-lfs",
        "it is a Git LFS pointer, a few lines that stand for the real file; "
        "`git lfs pull` fetches that",
    ),
    (0, b"\x89HDF\r\n\x1a\n", "it is an HDF5 file, as Keras saves models (.h5)"),
    (4, b"TFL3", "it is a TensorFlow Lite model"),
    (0, b"\x08\x01\x12", "it is a TensorFlow SavedModel"),
    (0, b"GGUF", "it is a GGUF file, made for language models"),
    (0, b"\x93NUMPY", "it is a NumPy array (.npy)"),
    (0, b"\x1f\x8b", "it is compressed by gzip; unpack it first"),
    (0, b"BZh", "it is compressed by bzip2; unpack it first"),
    (0, b"\xfd7zXZ", "it is compressed by xz; unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "it is compressed by zstd; unpack it first"),
    (0, b"7z\xbc\xaf", "it is a 7-Zip archive; unpack it first"),
    (0, b"Rar!", "it is a RAR archive; unpack it first"),
    (257, b"ustar", "it is a tar archive; unpack it first"),
    (0, b"\x89PNG", "it is a picture (PNG)"),
    (0, b"\xff\xd8\xff", "it is a picture (JPEG)"),
    (0, b"%PDF", "it is a PDF document"),
)
_STARTS = (  # as regular expressions
    (
        rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|\?xml|!--)",
        "it is a web page, so the download went wrong",
    ),
    (rb'(?s)\s*\{.*"weight_map"', "it is the index of a checkpoint in several files"),
    (rb"(\xef\xbb\xbf)?\s*[\[{]", "it is JSON text"),
    (
        rb"\x80[\x02-\x05]|\(dp0|\(lp0|c\w+\n",
        "it is a Python pickle that torch.save did not write, and HookViz never runs code from "
        "a file",
    ),
    (rb"\x08[\x02-\x1f][\x12\x3a\x42]", "it is an ONNX model"),
)
_SUFFIXES = {
    ".onnx": "by its name it is an ONNX model",
    ".pb": "by its name it is a TensorFlow graph",
    ".h5": "by its name it is a Keras model",
    ".caffemodel": "by its name it is a Caffe model",
    ".mlmodel": "by its name it is a Core ML model",
    ".index": "by its name it is part of a TensorFlow checkpoint",
}
_ARCHIVES = (  # what an entry of a zip is called, and what kind of zip has it
    (r"(^|/)saved_model\.pb$", "it is a zipped TensorFlow SavedModel"),
    (r"(^|/)model\.weights\.h5$", "it is a Keras model (.keras)"),
    (r"(^|/)archive_format$|exported_program", "it is a program saved by torch.export (.pt2)"),
    (r"\.npy$", "it holds NumPy arrays (.npz)"),
    (r"\[Content_Types\]\.xml$", "it is an office document"),
    (r"\.(pth?|safetensors|ckpt|bin)$", "it is a zip with a checkpoint inside; unpack it first"),
)


def read(source: Path | bytes, name: str = "") -> dict[str, Tensor]:
    """The state dict in a file, whatever is wrapped around it; nothing in it is ever executed.

    The kind of file is told by its content. Tensors keep the type and the names that they have in
    the file, and their memory is never larger than the file unpacked.

    Args:
        source: the file, or its bytes: safetensors, or what torch.save wrote, old format or new.
        name: what to call it in errors; the path's name by default.

    Raises:
        WeightsError: there is no such file, it is of another kind, damaged, or holds objects that
            only code could bring back.
    """
    name = shorten(name or (source.name if isinstance(source, Path) else "the checkpoint"))
    if isinstance(source, bytes):
        return _read(io.BytesIO(source), name)
    try:
        if source.exists() and not source.is_file():
            what = "a folder" if source.is_dir() else "no ordinary file"
            raise _unreadable(name, f"it is {what}")
        with source.open("rb") as stream:
            return _read(stream, name)
    except FileNotFoundError as error:
        raise WeightsError(
            f"There is no checkpoint {shorten(str(source), 200)!r}; "
            'weights are "pretrained", "random" or the path of a file.'
        ) from error
    except OSError as error:
        raise _unreadable(name, error.strerror or str(error)) from error


def _unreadable(name: str, why: str) -> WeightsError:
    return WeightsError(f"{name} can't be read as a checkpoint: {why}. {_WORKS}.")


def _damaged(name: str, error: Exception) -> WeightsError:
    reason = shorten(str(error).strip().partition("\n")[0], 120) or type(error).__name__
    return _unreadable(name, f"it is cut short or damaged ({reason})")


def _read(stream: BinaryIO, name: str) -> dict[str, Tensor]:
    head = stream.read(_HEAD)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if not head:
        raise _unreadable(name, "it is empty")
    if head.startswith(b"PK"):
        _check_archive(stream, size, name)
        return _tensors(_from_pickle(stream, name), name)
    if _TORCH_MAGIC in head[:40]:
        _check_pickles(stream, 5, name)
        return _tensors(_from_pickle(stream, name, _zeroed(size)), name)
    length = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and length < 1 << 40:
        return _tensors(_from_safetensors(stream, length, size, name), name)
    raise _unreadable(name, _kind(head, name))


def _from_safetensors(stream: BinaryIO, length: int, size: int, name: str) -> Mapping[str, Tensor]:
    if length + 8 > size:
        raise _unreadable(
            name,
            f"it is cut short: its header alone should take {length:,} bytes, and the file "
            f"has {size:,}",
        )
    try:
        found: Mapping[str, Tensor] = load_safetensors(stream.read())
    except Exception as error:  # whatever a damaged file makes the library raise
        raise _damaged(name, error) from error
    return OrderedDict(sorted(found.items()))  # it comes in another order each time


def _zeroed(most: int) -> Callable[[torch.UntypedStorage, str], torch.UntypedStorage]:
    """What torch asks where to put values: in memory that is zero, `most` bytes of it in all.

    A file of the old format says how much memory it wants, and need not fill it. What lies there
    then is what others left.
    """
    left = most

    def place(storage: torch.UntypedStorage, _location: str) -> torch.UntypedStorage:
        nonlocal left
        left -= storage.nbytes()
        if left < 0:
            raise ValueError("it claims more values than it holds")
        torch.empty(0, dtype=torch.uint8).set_(storage).zero_()
        return storage

    return place


def _from_pickle(stream: BinaryIO, name: str, location: Any = "cpu") -> Any:
    """What torch.save wrote; torch's own reader builds tensors and plain containers only."""
    stream.seek(0)
    try:
        return torch.load(stream, map_location=location, weights_only=True)
    except pickle.UnpicklingError as error:
        raise _refused(name, str(error)) from error
    except Exception as error:  # whatever a damaged file makes torch raise
        raise _damaged(name, error) from error


def _refused(name: str, reason: str) -> WeightsError:
    """Why torch's reader would not build what is in the file, and what to do."""
    found = re.search(r"GLOBAL (\S+)|<class '([\w.]+)'>", reason)
    wanted = shorten(found[1] or found[2]) if found else ""
    if wanted:
        what = (
            f"{name} is refused: it holds more than tensors. Reading it would run "
            f"{wanted} from inside the file, and HookViz never runs code from a checkpoint. "
            f"{_guess(wanted)}"
        )
    elif "Unsupported operand" in reason:
        what = (
            f"{name} is refused: its pickle is of another protocol than torch.save's own (2) or "
            "holds more than tensors, and HookViz never runs code from a checkpoint."
        )
    else:
        detail = reason.rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0]
        what = (
            f"{name} is refused: it is damaged or holds more than tensors ({shorten(detail, 120)})."
        )
    return WeightsError(
        f"{what} Where you trust the file, open it in your own Python and save the weights alone: "
        'torch.save(model.state_dict(), "weights.pth"), or safetensors.torch.save_file.'
    )


def _guess(wanted: str) -> str:
    """What an object of that class usually does in a checkpoint."""
    package = wanted.partition(".")[0]
    if package in ("numpy", "_codecs"):
        return "That is a NumPy value, such as a metric kept beside the weights."
    if package in ("argparse", "pathlib", "omegaconf", "yacs", "types", "datetime"):
        return "That belongs to the training options kept beside the weights."
    if package in ("getattr", "eval", "exec", "builtins", "os", "posix", "nt", "sys", "subprocess"):
        return "No network needs that, so take care: the file may be meant to do harm."
    return "The file is likely a whole model, as torch.save(model) writes it."


def _check_archive(stream: BinaryIO, size: int, name: str) -> None:
    """Refuse a zip that torch.save did not write, or that unpacks to much more than its size."""
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
    except Exception as error:  # zipfile raises many kinds over damaged files
        raise _unreadable(
            name, f"it is cut short or damaged: its table of contents is missing ({size:,} bytes)"
        ) from error
    inside = {entry.filename.partition("/")[2] for entry in entries}
    if "constants.pkl" in inside:
        raise _unreadable(
            name,
            "it is a TorchScript program (torch.jit.save), which is code; "
            'torch.save(torch.jit.load(file).state_dict(), "weights.pth") saves its weights alone',
        )
    if "data.pkl" not in inside:
        for pattern, kind in _ARCHIVES:
            if any(re.search(pattern, entry.filename) for entry in entries):
                raise _unreadable(name, kind)
        some = ", ".join(shorten(entry.filename, 40) for entry in entries[:3]) or "nothing"
        raise _unreadable(name, f"it is a zip archive that holds {some}")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MOST_INFLATED * size:
        raise _unreadable(
            name, f"it would unpack from {size:,} to {unpacked:,} bytes, which no checkpoint does"
        )
    # torch does not tell capitals from small letters in the names of entries
    pickles = [entry for entry in entries if entry.filename.casefold().endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > _MOST_PICKLE:
        raise _unreadable(name, _TOO_MANY)
    try:
        with zipfile.ZipFile(stream) as archive:
            described = io.BytesIO(archive.read(pickles[0]))
    except Exception as error:  # as above
        raise _damaged(name, error) from error
    _check_pickles(described, 1, name)


def _check_pickles(stream: BinaryIO, count: int, name: str) -> None:
    """Refuse pickles that take memory at will, or so long that building it takes gigabytes.

    torch's old format is five pickles, the last two the state dict and which values follow.
    """
    try:
        for _ in range(count):  # genops reads a pickle's instructions and follows none of them
            for instruction, argument, _ in pickletools.genops(stream):
                if stream.tell() > _MOST_PICKLE:
                    raise _unreadable(name, _TOO_MANY)
                if instruction.name == "GLOBAL" and _MAKERS.match(str(argument)):
                    raise _refused(name, f"GLOBAL {str(argument).replace(' ', '.')}")
    except WeightsError:
        raise
    except Exception as error:  # whatever a damaged file makes it raise
        raise _damaged(name, error) from error


def _kind(head: bytes, name: str) -> str:
    """What a file is that is no checkpoint, by its first bytes, else by its name."""
    for offset, sign, kind in _SIGNS:
        if head[offset : offset + len(sign)] == sign:
            return kind
    for pattern, kind in _STARTS:
        if re.match(pattern, head, re.IGNORECASE):
            title = re.search(rb"<(?:title|code)>\s*([^<]{1,200})", head, re.IGNORECASE)
            said = shorten(title[1].decode(errors="replace").strip()) if title else ""
            return f"{kind} ({said!r})" if said else kind
    suffix = Path(name).suffix.casefold()
    return _SUFFIXES.get(suffix, f"its first bytes, {head[:8]!r}, are of no kind known here")


def _tensors(loaded: Any, name: str) -> dict[str, Tensor]:
    """The state dict inside `loaded`, unwrapped and checked."""
    if not isinstance(loaded, Mapping):
        raise WeightsError(
            f"{name} holds {type(loaded).__name__}, not a state dict (names and tensors)."
        )
    found = _unwrapped(loaded, _DEEPEST, set())
    if not found:
        keys = ", ".join(shorten(str(key), 40) for key in list(loaded)[:5]) or "nothing"
        raise WeightsError(f"{name} holds no tensors with names; it holds {keys}.")
    for key, tensor in found.items():
        fault = _fault(tensor)
        if fault:
            raise WeightsError(
                f"{name} can't be used: {shorten(key)} {fault}. Save its weights as ordinary "
                "tensors of floating point numbers."
            )
    return OrderedDict((key, tensor.detach()) for key, tensor in found.items())


def _unwrapped(node: Mapping[Any, Any], depth: int, seen: set[int]) -> dict[str, Tensor]:
    """The tensors under the likeliest key, else the most tensors that lie together.

    Real state dicts hold no dicts, so a dict under a telling name goes before tensors beside it,
    such as a best accuracy.
    """
    if depth == 0 or id(node) in seen:
        return {}
    seen.add(id(node))
    inner = {
        key.casefold(): value
        for key, value in node.items()
        if isinstance(key, str) and isinstance(value, Mapping)
    }
    for key in _PLAIN:
        if key in inner:
            found = _unwrapped(inner.pop(key), depth - 1, seen)
            if found:
                return found
    best = {k: v for k, v in node.items() if isinstance(k, str) and isinstance(v, Tensor)}
    averaged = [inner.pop(key) for key in list(inner) if _AVERAGED.search(key)]
    for key, child in inner.items():
        found = {} if _NO_WEIGHTS.search(key) else _unwrapped(child, depth - 1, seen)
        best = max(best, found, key=len)
    for child in averaged:
        found = _unwrapped(child, depth - 1, seen)
        if len(found) > len(best):
            return found
    return best


def _fault(tensor: Tensor) -> str:
    """What keeps a tensor from being weights; empty where nothing does."""
    if tensor.is_nested or tensor.layout != torch.strided:
        return "is a sparse or nested tensor"
    if tensor.is_quantized:
        return "is quantised"
    if tensor.is_meta:
        return "has a shape and no values"
    if tensor.is_complex():
        return "holds complex numbers"
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        return f"claims {tensor.numel():,} values, more than the file holds for it"
    return ""
