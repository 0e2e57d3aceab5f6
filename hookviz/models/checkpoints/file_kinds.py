"""Name the kind of a file without a state dict: by its first bytes, a zip's entries or its name."""

import re
from collections.abc import Iterable
from pathlib import Path

from hookviz.errors import shorten
from hookviz.language.saying import mark, say

_SIGNS: tuple[tuple[int, bytes, str], ...] = (  # offset, bytes, and what kind of file has them
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
_ARCHIVES = (  # what an entry of a zip is called, and what kind of zip has it
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


def kind_of(head: bytes, name: str) -> str:
    """Name the kind of a file that is no checkpoint, by its first bytes, else by its name."""
    for offset, sign, kind in _SIGNS:
        if head[offset : offset + len(sign)] == sign:
            return say(kind)
    for pattern, kind in _STARTS:
        if re.match(pattern, head, re.IGNORECASE):
            title = re.search(rb"<(?:title|code)>\s*([^<]{1,200})", head, re.IGNORECASE)
            said = shorten(title[1].decode(errors="replace").strip()) if title else ""
            return f"{say(kind)} ({said!r})" if said else say(kind)
    suffix = Path(name).suffix.casefold()
    known = _SUFFIXES.get(suffix)
    return (
        say(known)
        if known
        else say("its first bytes, {head!r}, are of no kind known here", head=head[:8])
    )


def archive_kind(entries: Iterable[str]) -> str:
    """Name the kind of a zip that torch.save did not write, by its entries; empty if unknown."""
    names = tuple(entries)
    for pattern, kind in _ARCHIVES:
        if any(re.search(pattern, name) for name in names):
            return say(kind)
    return ""
