"""Show the examples of docstrings as code in the API reference: a griffe extension for mkdocs.yml.

They stand in our docstrings as plain doctests, which Markdown would take for links and quotes.
"""

import re
from typing import Any

from griffe import Extension

_DOCTEST = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)


class FencedExamples(Extension):
    """Puts each doctest between the fences of a block of Python."""

    def on_instance(self, *, obj: Any, **_kwargs: Any) -> None:
        """Change the docstring of a module, a class, a function or an attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    r"""Return a docstring with its doctests as blocks of code.

    >>> fenced("Add.\n\n>>> 1 + 1\n2")
    'Add.\n\n```python\n>>> 1 + 1\n2\n```'
    """
    return _DOCTEST.sub(lambda found: f"```python\n{found[0].rstrip()}\n```", text)
