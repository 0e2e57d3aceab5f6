"""Read paths as people write them, and tell what is wrong with one."""

import os
from pathlib import Path

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
