"""Read paths as people write them, tell what is wrong with one, and write files whole."""

import os
from pathlib import Path

from hookviz.errors import HookVizError, shorten
from hookviz.language.saying import say


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return the path, with the home folder in place of ``~`` or ``~user``.

    A shell puts it in by itself, but not in ``--out=~/maps``, in quotes or in a notebook. Where
    there is no such user the path stays as it was written.
    """
    path = Path(given)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def path_ending_in(
    given: str | os.PathLike[str], suffixes: tuple[str, ...], error: type[HookVizError]
) -> Path:
    """Return the path of a file of a kind; the first of its suffixes is the usual one.

    Raises:
        HookVizError: it ends in something else; of the kind `error`.
    """
    file = path_of(given)
    if file.suffix.casefold() not in suffixes:
        raise error(
            say(
                "{file!r} does not end in {suffix}, as these files do.",
                file=shorten(file.name),
                suffix=suffixes[0],
            )
        )
    return file


def write_file(file: Path, data: bytes, error: type[HookVizError]) -> None:
    """Write a file as a whole.

    Raises:
        HookVizError: the system refuses it; of the kind `error`.
    """
    try:
        file.write_bytes(data)
    except OSError as refused:
        why = refused.strerror or type(refused).__name__
        raise error(
            say("{file!r} can't be written: {reason}.", file=shorten(str(file), 200), reason=why)
        ) from refused


def fault_of(path: Path) -> str:
    """Return why a path is no ordinary file, to follow "it is"; empty if it is one, or missing.

    To open a named pipe waits for whoever writes into it, and a device can go on for ever.

    Raises:
        OSError: the path can't be looked up.
    """
    if path.is_file():
        return ""
    if path.is_dir():
        return say("a folder")
    if path.exists():
        return say("no ordinary file but a pipe, a socket or a device")
    return say("a link to a file that isn't there") if path.is_symlink() else ""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all, and is on the disk.

    Raises:
        OSError: the disk is full, and what was there before is still there.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        new.unlink(missing_ok=True)
        raise
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a file's new name in a folder last through a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:  # some file systems can't
        pass
    finally:
        os.close(handle)
