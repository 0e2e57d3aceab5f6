"""Files of weights for the tests of checkpoints, good ones and odd ones."""

import io
import zipfile
from typing import Any

import torch
from torch import Tensor

from tests.networks import Tiny, seeded


def saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def old_format(value: Any) -> bytes:
    return saved(value, _use_new_zipfile_serialization=False)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


STATE = seeded(Tiny).state_dict()


EXECUTED: list[str] = []


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return EXECUTED.append, ("a pickle was executed",)


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    return found.keys() == expected.keys() and all(
        torch.equal(found[key], expected[key]) for key in expected
    )
