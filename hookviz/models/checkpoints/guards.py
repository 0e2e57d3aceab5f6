"""Refuse files of weights that are harmful or no checkpoint, before torch reads them.

Zip bombs, other archives and endless pickles are refused here. The errors name the kind of file, by
its first bytes, a zip's entries or its name, and a kind that works.
"""

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hookviz import shallow_json
from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import joined, mark, say
from hookviz.models.checkpoints.pickle_check import (
    PickleTooLongError,
    UnsafeGlobalError,
    check_pickle,
)
from hookviz.reader import wall

if TYPE_CHECKING:
    from hookviz.reader.answer_file import AnswerWriter

_WORKS = mark("HookViz reads .safetensors files, and state dicts saved by torch.save (.pt, .pth)")
_SIGNS: tuple[tuple[int, bytes, str], ...] = (  # offset, bytes, and the kind of file
    (
        0,
        b"version https://git-lfs",
        mark(
            "it is a Git LFS pointer, a few lines that stand for the real file; `git lfs "
            "pull` fetches that"
        ),
    ),
    (0, b"\x89HDF\r\n\x1a\n", mark("it is an HDF5 file, as Keras saves models (.h5)")),
    (4, b"TFL3", mark("it is a TensorFlow Lite model")),
    (0, b"\x08\x01\x12", mark("it is a TensorFlow SavedModel")),
    (0, b"GGUF", mark("it is a GGUF file, made for language models")),
    (0, b"\x93NUMPY", mark("it is a NumPy array (.npy)")),
    (0, b"\x1f\x8b", mark("it is compressed by gzip; unpack it first")),
    (0, b"BZh", mark("it is compressed by bzip2; unpack it first")),
    (0, b"\xfd7zXZ", mark("it is compressed by xz; unpack it first")),
    (0, b"\x28\xb5\x2f\xfd", mark("it is compressed by zstd; unpack it first")),
    (0, b"7z\xbc\xaf", mark("it is a 7-Zip archive; unpack it first")),
    (0, b"Rar!", mark("it is a RAR archive; unpack it first")),
    (257, b"ustar", mark("it is a tar archive; unpack it first")),
    (0, b"\x89PNG", mark("it is a picture (PNG)")),
    (0, b"\xff\xd8\xff", mark("it is a picture (JPEG)")),
    (0, b"%PDF", mark("it is a PDF document")),
)
_STARTS = (  # as regular expressions
    (
        rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|\?xml|!--)",
        mark("it is a web page, so the download went wrong"),
    ),
    (rb'(?s)\s*\{.*"weight_map"', mark("it is the index of a checkpoint in several files")),
    (rb"(\xef\xbb\xbf)?\s*[\[{]", mark("it is JSON text")),
    (
        rb"\x80[\x02-\x05]|\(dp0|\(lp0|c\w+\n",
        mark(
            "it is a Python pickle that torch.save did not write, and HookViz never runs "
            "code from a file"
        ),
    ),
    (rb"\x08[\x02-\x1f][\x12\x3a\x42]", mark("it is an ONNX model")),
)
_SUFFIXES = {
    ".onnx": mark("by its name it is an ONNX model"),
    ".pb": mark("by its name it is a TensorFlow graph"),
    ".h5": mark("by its name it is a Keras model"),
    ".caffemodel": mark("by its name it is a Caffe model"),
    ".mlmodel": mark("by its name it is a Core ML model"),
    ".index": mark("by its name it is part of a TensorFlow checkpoint"),
}
_ARCHIVES = (  # patterns of an entry's name, and the kind of zip that has it
    (r"(^|/)saved_model\.pb$", mark("it is a zipped TensorFlow SavedModel")),
    (r"(^|/)model\.weights\.h5$", mark("it is a Keras model (.keras)")),
    (
        r"(^|/)archive_format$|exported_program",
        mark("it is a program saved by torch.export (.pt2)"),
    ),
    (r"\.npy$", mark("it holds NumPy arrays (.npz)")),
    (r"\[Content_Types\]\.xml$", mark("it is an office document")),
    (
        r"\.(pth?|safetensors|ckpt|bin)$",
        mark("it is a zip with a checkpoint inside; unpack it first"),
    ),
)
_MOST_INFLATED = 2  # times its size that a zip may unpack to; torch.save does not compress
_ZIP_TAIL = 70_000  # bytes in which the records at a zip's end lie, with its comment
MOST_DESCRIPTION = 4_000_000
"""Bytes that may describe the tensors of a file; 1,000 tensors take 0.1 MB."""

_MOST_TENSORS = 20_000  # of a safetensors file; the largest diffusion models have 2,000
_SECONDS = 20  # that a description of that length may take behind the wall

TOO_MANY = mark("it describes more tensors than any network has")


def unreadable(name: str, why: str) -> WeightsError:
    """Return the error for a file that is no checkpoint; `why` follows a colon."""
    return WeightsError(
        say(
            "{name} can't be read as a checkpoint: {reason}. {works}.",
            name=name,
            reason=why,
            works=say(_WORKS),
        )
    )


def damaged(name: str, error: Exception) -> WeightsError:
    """Return the error for a file that a library fails on, with the first line of its message."""
    reason = shorten(str(error).strip().partition("\n")[0], 120) or type(error).__name__
    return unreadable(name, say("it is cut short or damaged ({reason})", reason=reason))


def unsafe_file_error(name: str, reason: str) -> WeightsError:
    """Return the error for a file that torch refuses to unpickle, with the class that it wants."""
    match = re.search(r"GLOBAL (\S+)|<class '([\w.]+)'>", reason)
    wanted = shorten(match[1] or match[2]) if match else ""
    if wanted:
        what = say(
            "{name} is refused: it holds more than tensors. Reading it would run "
            "{function} from inside the file, and HookViz never runs code from a "
            "checkpoint. {hint}",
            name=name,
            function=wanted,
            hint=_guess(wanted),
        )
    elif "Unsupported operand" in reason:
        what = say(
            "{name} is refused: its pickle is of another protocol than torch.save's own "
            "(2) or holds more than tensors, and HookViz never runs code from a "
            "checkpoint.",
            name=name,
        )
    else:
        detail = reason.rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0]
        what = say(
            "{name} is refused: it is damaged or holds more than tensors ({detail}).",
            name=name,
            detail=shorten(detail, 120),
        )
    return WeightsError(
        say(
            "{problem} Where you trust the file, open it in your own Python and save the "
            'weights alone: torch.save(model.state_dict(), "weights.pth"), or '
            "safetensors.torch.save_file.",
            problem=what,
        )
    )


def _guess(wanted: str) -> str:
    """Return the usual role of an object of that class in a checkpoint."""
    package = wanted.partition(".")[0]
    if package in ("numpy", "_codecs"):
        return say("That is a NumPy value, such as a metric kept beside the weights.")
    if package in ("argparse", "pathlib", "omegaconf", "yacs", "types", "datetime"):
        return say("That belongs to the training options kept beside the weights.")
    if package in ("getattr", "eval", "exec", "builtins", "os", "posix", "nt", "sys", "subprocess"):
        return say("No network needs that, so take care: the file may be meant to do harm.")
    return say("The file is likely a whole model, as torch.save(model) writes it.")


def kind_of(head: bytes, name: str) -> str:
    """Name the kind of a file that is no checkpoint, by its first bytes, else by its name."""
    for offset, sign, kind in _SIGNS:
        if head[offset : offset + len(sign)] == sign:
            return say(kind)
    for pattern, kind in _STARTS:
        if re.match(pattern, head, re.IGNORECASE):
            title = re.search(rb"<(?:title|code)>\s*([^<]{1,200})", head, re.IGNORECASE)
            text = shorten(title[1].decode(errors="replace").strip()) if title else ""
            return f"{say(kind)} ({text!r})" if text else say(kind)
    suffix = Path(name).suffix.casefold()
    known = _SUFFIXES.get(suffix)
    return (
        say(known)
        if known
        else say("its first bytes, {head!r}, are of no kind known here", head=head[:8])
    )


def check_archive(stream: BinaryIO, size: int, name: str) -> None:
    """Refuse a zip that torch.save did not write, or one that would fill memory when unpacked."""
    if _directory_size(stream, size) > MOST_DESCRIPTION:  # zipfile makes an object of each entry
        raise unreadable(name, say(TOO_MANY))
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
    except Exception as error:  # zipfile raises many kinds over damaged files
        raise unreadable(
            name,
            say(
                "it is cut short or damaged: its table of contents is missing ({size:,} bytes)",
                size=size,
            ),
        ) from error
    inside = {entry.filename.partition("/")[2] for entry in entries}
    if "constants.pkl" in inside:
        raise unreadable(
            name,
            say(
                "it is a TorchScript program (torch.jit.save), which is code; "
                'torch.save(torch.jit.load(file).state_dict(), "weights.pth") saves its '
                "weights alone"
            ),
        )
    if "data.pkl" not in inside:
        names = joined(shorten(entry.filename, 40) for entry in entries[:3]) or "nothing"
        for pattern, kind in _ARCHIVES:
            if any(re.search(pattern, entry.filename) for entry in entries):
                raise unreadable(name, say(kind))
        raise unreadable(name, say("it is a zip archive that holds {files}", files=names))
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MOST_INFLATED * size:
        raise unreadable(
            name,
            say(
                "it would unpack from {size:,} to {unpacked:,} bytes, which no checkpoint does",
                size=size,
                unpacked=unpacked,
            ),
        )
    # torch does not tell capitals from small letters in the names of entries
    pickles = [entry for entry in entries if entry.filename.casefold().endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > MOST_DESCRIPTION:
        raise unreadable(name, say(TOO_MANY))
    try:
        with zipfile.ZipFile(stream) as archive:
            pickled = io.BytesIO(archive.read(pickles[0]))
    except Exception as error:  # as above
        raise damaged(name, error) from error
    check_pickles(pickled, 1, name)


def _directory_size(stream: BinaryIO, size: int) -> int:
    """Return how many bytes the table of contents of a zip has, by the largest record at its end.

    Records: PKWARE's APPNOTE.TXT 6.3.10, 4.3.16 and, where that has no room for the number, 4.3.14.
    """
    stream.seek(max(0, size - _ZIP_TAIL))
    tail = stream.read(_ZIP_TAIL)
    stream.seek(0)
    sizes = [0]
    for sign, at, width in ((b"PK\x05\x06", 12, 4), (b"PK\x06\x06", 40, 8)):
        for record in re.finditer(re.escape(sign), tail):
            number = tail[record.start() + at :][:width]
            sizes.append(int.from_bytes(number, "little") if number != b"\xff" * 4 else 0)
    return max(sizes)


def check_pickles(stream: BinaryIO, count: int, name: str) -> None:
    """Refuse pickles that take memory at will, or so long that building it takes gigabytes.

    They are followed behind the wall where it is up: some seconds for millions of instructions, in
    which the app answers nobody else.

    Args:
        stream: at the start of the first.
        count: number of pickles: torch's old format has five, the last two the state dict and the
            list of its values.
        name: of the file, for errors.

    Raises:
        WeightsError: reading them would do harm, or they are damaged.
    """
    data = stream.read(MOST_DESCRIPTION + 1)
    _follow("pickles", follow_pickles, data, {"name": name, "count": count})


def check_header(header: bytes, name: str) -> None:
    """Refuse a header of safetensors that is no JSON, or has more tensors than any network.

    The library makes a tensor of each, which takes seconds for what fits into 4 MB.

    Raises:
        WeightsError: reading the file would do harm, or it is damaged.
    """
    _follow("safetensors", follow_header, header, {"name": name})


def _follow(
    job: str,
    follow: Callable[[bytes, Mapping[str, Any]], object],
    data: bytes,
    options: Mapping[str, Any],
) -> None:
    if wall.is_up():
        memory = wall.memory_for_text(len(data))
        wall.read(job, data, options, memory=memory, seconds=_SECONDS)
    else:
        follow(data, options)


def follow_header(
    data: "mmap | bytes", options: Mapping[str, Any], _answer: "AnswerWriter | None" = None
) -> Mapping[str, Any]:
    """Check a header as `check_header` says; the job that is run behind the wall."""
    name = options["name"]
    try:
        tensors = shallow_json.parse(bytes(data))
    except ValueError as error:
        raise damaged(name, error) from error
    if len(tensors) > _MOST_TENSORS:
        raise unreadable(name, say(TOO_MANY))
    return {}


def follow_pickles(
    data: "mmap | bytes", options: Mapping[str, Any], _answer: "AnswerWriter | None" = None
) -> Mapping[str, Any]:
    """Check pickles as `check_pickles` says; the job that is run behind the wall."""
    stream, name = io.BytesIO(data), options["name"]
    try:
        for _ in range(options["count"]):
            check_pickle(stream, MOST_DESCRIPTION)
    except UnsafeGlobalError as error:
        raise unsafe_file_error(name, f"GLOBAL {error}") from error
    except PickleTooLongError as error:
        raise unreadable(name, say(TOO_MANY)) from error
    except Exception as error:  # whatever a damaged file makes it raise
        if len(data) > MOST_DESCRIPTION:  # it is cut within an instruction
            raise unreadable(name, say(TOO_MANY)) from error
        raise damaged(name, error) from error
    return {}
