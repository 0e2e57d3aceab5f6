"""Run a learner's own lines in a process of their own: the program of `hookviz.lessons.own_code`.

Its text is given to Python as it is, so that the lines find no HookViz unless they import it. It
runs ``set_up.py`` and then ``lines.py`` of the folder that it is started in, writes what they print
into ``printed.txt`` as it comes, and what came of them into ``result.json`` and ``.npy`` files.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

LINES = "lines.py"
MOST_LETTERS, MOST_PICTURES, MOST_NUMBERS = 8_000, 6, 4_000_000


class OutputFile:
    """What lines print, into a file and up to a length."""

    def __init__(self) -> None:
        """Begin the file."""
        self.file = Path("printed.txt").open("w", 1, "utf-8")  # noqa: SIM115 - as long as we run
        self.left = MOST_LETTERS

    def write(self, text: str) -> int:
        """Write as much of the text as there is room for."""
        if self.left > 0:
            self.file.write(text[: self.left])
            self.left -= len(text)
        return len(text)

    def flush(self) -> None:
        """Let it be read."""
        self.file.flush()


def limit_memory(megabytes: int) -> None:
    """Let the process take so much more than it has by now, where the system can bound that."""
    try:
        import resource  # noqa: PLC0415 - not on Windows

        pages = Path("/proc/self/statm").read_text("ascii").split()[0]
        has = int(pages) * resource.getpagesize()
    except (ImportError, OSError):
        return
    limit = has + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def fault_of(error: BaseException) -> dict[str, Any]:
    """Return what went wrong: the error's kind, what it says, and in which of the lines."""
    said = str(error).strip().partition("\n")[0][:300]
    if isinstance(error, SyntaxError) and error.filename == LINES:
        return {"kind": type(error).__name__, "said": error.msg, "line": error.lineno}
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return {"kind": "memory", "said": "", "line": None}
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == LINES]
    return {"kind": type(error).__name__, "said": said, "line": lines[-1] if lines else None}


def numbers_of(values: Any) -> Any:
    """Return what lines called a picture or bars as an array of its own."""
    import numpy as np  # noqa: PLC0415 - with the lines' own torch

    values = values.detach() if hasattr(values, "detach") else values
    return np.array(values, np.float32)


def result_of(held: dict[str, Any]) -> dict[str, Any]:
    """Write the pictures, and return the facts and what each picture's file is called."""
    import numpy as np  # noqa: PLC0415

    facts = {
        key: value
        for key, value in held.items()
        if key.islower() and not key.startswith("_") and type(value) in (str, int, float)
    }
    titles: list[str] = []
    drawn = held.get("pictures")
    for title, values in drawn.items() if isinstance(drawn, dict) else ():
        picture = numbers_of(values)
        if picture.ndim == 2 and 0 < picture.size <= MOST_NUMBERS and len(titles) < MOST_PICTURES:
            np.save(f"{len(titles)}.npy", picture, allow_pickle=False)
            titles.append(str(title)[:80])
    return {"facts": facts, "pictures": titles}


def main(megabytes: int) -> None:
    """Run both files, and write what came of them."""
    held: dict[str, Any] = {"__name__": "__main__"}
    result: dict[str, Any] = {"fault": None, "facts": {}, "pictures": []}
    try:
        for name in ("set_up.py", LINES):
            text = Path(name).read_text("utf-8")
            if name == LINES:
                limit_memory(megabytes)
                printed: Any = OutputFile()
                sys.stdout = printed
                Path("begun").touch()
            exec(compile(text, name, "exec"), held)  # noqa: S102 - what the process is for
        result |= result_of(held)
    except SystemExit as error:
        result["fault"] = fault_of(error) if error.code else None
    except BaseException as error:  # noqa: BLE001 - whatever lines raise is told
        result["fault"] = fault_of(error)
    sys.stdout.flush()
    Path("result.part").write_text(json.dumps(result, default=str), "utf-8")
    Path("result.part").replace("result.json")
    os._exit(0)  # at once, whatever threads there are


if __name__ == "__main__":
    main(int(sys.argv[1]))
