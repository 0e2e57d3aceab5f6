"""Readers that try what a stranger who took one over would try."""

import ctypes
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookviz.reader.answer_file import AnswerWriter


def escape(data: Any, options: Mapping[str, Any], answer: AnswerWriter) -> Mapping[str, Any]:
    other = options["other"]
    tries: dict[str, Callable[[], object]] = {
        "file": lambda: Path("/etc/passwd").read_bytes(),
        "new file": lambda: Path("/tmp/hookviz-reader-was-here").write_bytes(b""),  # noqa: S108
        "memory of others": lambda: Path(f"/proc/{other}/maps").read_bytes(),
        "environment of others": lambda: Path(f"/proc/{other}/environ").read_bytes(),
        "network": socket.socket,
        "process": os.fork,
        "program": lambda: os.execv("/bin/true", ["true"]),  # noqa: S606
        "signal": lambda: os.kill(other, 0),
        "folder": lambda: list(Path("/").iterdir()),
    }
    reached = []
    for name, attempt in tries.items():
        try:
            attempt()
        except OSError:
            continue
        reached.append(name)
    return {"reached": reached, "environment": dict(os.environ), "size": len(data)}


def array(data: Any, options: Mapping[str, Any], answer: AnswerWriter) -> Mapping[str, Any]:
    answer.array("large", (3000, 3000), "uint8")[:] = data[0]
    answer.array("small", (2,), "uint8")[:] = (1, 2)
    return {}


def crash(data: Any, options: Mapping[str, Any], answer: AnswerWriter) -> Mapping[str, Any]:
    ctypes.string_at(0)
    return {}


def hang(data: Any, options: Mapping[str, Any], answer: AnswerWriter) -> Mapping[str, Any]:
    while True:
        pass


def memory(data: Any, options: Mapping[str, Any], answer: AnswerWriter) -> Mapping[str, Any]:
    return {"size": len(bytearray(2**30))}
