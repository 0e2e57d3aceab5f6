import ast
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.codegen.script_text import source_of

Numbers = NDArray[np.floating[Any]]


def doubled(
    values: Numbers, times: float = 2.0, *, offset: dict[str, float] | None = None
) -> Numbers:
    """Return twice the values, ``(N,)``.

    As people do.

    Args:
        values: numbers.
        times: how much.
        offset: an example of: a colon.
    """
    result: Numbers = values * times + (offset or {}).get("all", 0)
    return result


def named(values: Tensor) -> Tensor:
    """Return them.

    Raises:
        ValueError: never.
    """
    count: int = len(values)
    largest: Tensor = values.max() * count
    return largest + {"a": 1}["a"]


def test_a_script_gets_functions_without_annotations_and_sections_that_compute_the_same() -> None:
    assert source_of(doubled, named) == (
        'def doubled(values, times=2.0, *, offset=None):\n    """Return twice the values, ``(N,)``.'
        '\n\n    As people do.\n    """\n'
        '    return values * times + (offset or {}).get("all", 0)\n\n\n'
        'def named(values):\n    """Return them."""\n    count = len(values)\n'
        '    largest = values.max() * count\n    return largest + {"a": 1}["a"]'
    )
    names: dict[str, Any] = {}
    exec(compile(ast.parse(source_of(doubled, named)), "script.py", "exec"), names)  # noqa: S102
    values = np.arange(3.0)
    np.testing.assert_array_equal(
        names["doubled"](values, offset={"all": 1}), doubled(values, offset={"all": 1})
    )
    assert names["named"](torch.ones(2)) == named(torch.ones(2))
