from typing import Any

import pytest

import hookviz
from hookviz.lenses.contract.weights import Weights


class Nobody:
    """No subject: whether there are such channels is for the lens."""


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        (None, ()),
        ("", ()),
        ("12", ((12, 1.0),)),
        ("80:-1, 12", ((12, 1.0), (80, -1.0))),
        (" 3 : 0.25 ", ((3, 0.25),)),
        ({5: 2, 1: -0.5}, ((1, -0.5), (5, 2.0))),
        (((1, -0.5), (5, 2.0)), ((1, -0.5), (5, 2.0))),
    ],
)
def test_weights(given: Any, weights: tuple[tuple[int, float], ...]) -> None:
    subject: Any = Nobody()
    assert Weights().resolve(given, subject) == weights


@pytest.mark.parametrize("given", ["a", "1:", "1:x", "-1", "1,1", "1;2", "1:1e9", "9" * 50, "1,,"])
def test_what_means_nothing_is_refused(given: str) -> None:
    subject: Any = Nobody()
    with pytest.raises(hookviz.SettingError, match="weights such as"):
        Weights().resolve(given, subject)
