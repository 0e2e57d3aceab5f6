import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.models.checkpoints.reading import read_state_dict
from tests.models.checkpoints.checkpoint_files import EXECUTED, STATE, Bomb, old_format, saved


class Mine:
    pass


@pytest.mark.parametrize("write", [saved, old_format])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (nn.Conv2d(1, 1, 1), r"torch\.nn\.modules\.conv\.Conv2d .*torch\.save\(model\) writes it"),
        ({"state_dict": STATE, "best": np.float64(3)}, r"numpy\S*scalar .*a NumPy value"),
        ({"a": np.zeros(3, np.float32)}, r"numpy\S*_reconstruct .*a NumPy value"),
        ({"model": STATE, "args": argparse.Namespace(lr=1)}, r"argparse\.Namespace .*options"),
        ({"model": STATE, "at": pathlib.PurePosixPath("x")}, r"pathlib\.\S+ .*options"),
        ({"model": STATE, "hook": saved}, r"checkpoint_files\.saved"),
        ({"model": STATE, "mine": Mine()}, r"test_refusals\.Mine"),
        ({"model": STATE, "bomb": Bomb()}, r"getattr .*may be meant to do harm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects_are_refused_by_name_and_never_run(
    value: Any, wanted: str, write: Callable[[Any], bytes]
) -> None:
    with pytest.raises(hookviz.WeightsError, match=wanted) as caught:
        read_state_dict(write(value), "whole.pth")
    text = str(caught.value)
    assert text.startswith("whole.pth is refused: it holds more than tensors")
    assert 'torch.save(model.state_dict(), "weights.pth")' in text
    assert EXECUTED == []


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")  # torch's own
def test_another_pickle_protocol_is_refused_with_what_works() -> None:
    with pytest.raises(hookviz.WeightsError, match=r"another protocol than torch\.save's own"):
        read_state_dict(saved(STATE, pickle_protocol=4))
