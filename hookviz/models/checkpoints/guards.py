"""Refuse harmful files before torch reads them: zip bombs, other archives, endless pickles."""

import io
import zipfile
from collections.abc import Mapping
from mmap import mmap
from typing import TYPE_CHECKING, Any, BinaryIO

from hookviz.errors import shorten
from hookviz.language.saying import joined, mark, say
from hookviz.models.checkpoints.file_kinds import archive_kind
from hookviz.models.checkpoints.pickle_check import (
    PickleTooLongError,
    UnsafeGlobalError,
    check_pickle,
)
from hookviz.models.checkpoints.refusals import damaged, unreadable, unsafe_file_error
from hookviz.reader import wall

if TYPE_CHECKING:  # on Linux alone
    from hookviz.reader.answer_file import AnswerWriter

_MOST_INFLATED = 10  # times its size that a zip may unpack to; torch.save does not compress
MOST_DESCRIPTION = 4_000_000
"""Bytes that may describe the tensors of a file; 1,000 tensors take 0.1 MB."""

_MEMORY, _SECONDS = 512 * 1024 * 1024, 20  # that following pickles of that length may take

TOO_MANY = mark("it describes more tensors than any network has")


def check_archive(stream: BinaryIO, size: int, name: str) -> None:
    """Refuse a zip that torch.save did not write, or one that would fill memory when unpacked."""
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
        kind = archive_kind(entry.filename for entry in entries)
        raise unreadable(name, kind or say("it is a zip archive that holds {files}", files=names))
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


def check_pickles(stream: BinaryIO, count: int, name: str) -> None:
    """Refuse pickles that take memory at will, or so long that building it takes gigabytes.

    They are followed behind the wall where it is up: some seconds for millions of instructions, in
    which the app answers nobody else.

    Args:
        stream: at the start of the first.
        count: how many there are: torch's old format is five, the last two the state dict and which
            values follow.
        name: what to call the file in errors.

    Raises:
        WeightsError: reading them would do harm, or they are damaged.
    """
    data, options = stream.read(MOST_DESCRIPTION + 1), {"name": name, "count": count}
    if not wall.is_up():
        follow_pickles(data, options)
        return
    wall.read("pickles", data, options, memory=_MEMORY, seconds=_SECONDS)


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
