"""Read paths as people write them, and tell what is wrong with one."""

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
