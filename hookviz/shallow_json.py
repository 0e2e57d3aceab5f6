"""Parse JSON that anybody may have written, and refuse what is nested deeper than ours ever is.

Python's parser calls itself for each bracket. Just before it gives up, whatever runs in between,
such as the callbacks of a garbage collection, has no depth left and is lost, though it is others'.
"""

import json
import re
from typing import Any

DEEPEST = 64
"""Number of brackets in one another that are read."""

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)  # and texts, which can hold some


def parse(text: str | bytes) -> Any:
    """Parse JSON, of bytes in any of its encodings.

    Raises:
        ValueError: it is no JSON, or nested deeper than `DEEPEST`.

    >>> from hookviz import shallow_json
    >>> shallow_json.parse('{"cell": [1, 2]}')
    {'cell': [1, 2]}
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += (found[0] in ("[", "{")) - (found[0] in ("]", "}"))
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} brackets in one another")
    return json.loads(text)
