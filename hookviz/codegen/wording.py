"""How names and calls are written in a script."""

import re
from typing import Any

from hookviz.codegen.facts import PictureFacts


def quoted(text: str) -> str:
    """A string as Python writes it, so that a file's name stays a name whatever is in it."""
    written = repr(text)
    return written if '"' in written or "\\" in written else f'"{written[1:-1]}"'


def call(function: str, *arguments: str, **options: Any) -> str:
    """A function call: arguments that are written already, then options by their names."""
    named = [f"{name}={value}" for name, value in options.items()]
    return f"{function}({', '.join([*arguments, *named])})"


def file_name(name: str, ending: str) -> str:
    """A file's name, of characters that every system takes."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII) + f".{ending}"


def picture_file(facts: PictureFacts, more: str = "") -> str:
    """The name of a picture to write, as a string."""
    return quoted(file_name(f"{facts.model}-{facts.address}{more}", "png"))


def to_fill_in(function: str, says: str, then: str) -> str:
    """A function that only the person can write, and the line that calls it."""
    return _TO_FILL_IN.format(call=function, says=says, then=then)


_TO_FILL_IN = '''
def {call}:
    """{says}"""
    raise SystemExit("Fill in {call} in this script: only you have it.")


{then}'''
