from typing import Any

import pytest

import hookviz


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 8}, "size=8: pictures have 32 to 512"),
        ({"seed": -1}, "seed=-1"),
        ({"space": "fourier"}, "'Fourier'"),
        ({"penalty": "L1"}, "L2"),
        ({"rate": float("nan")}, "rate=nan"),
        ({"diversity": -1.0}, "diversity=-1.0"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(hookviz.HookVizError, match=message):
        hookviz.SynthesisMethod(**given).check()
