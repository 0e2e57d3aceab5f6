from collections.abc import Callable
from typing import Any

import pytest

import hookviz
from hookviz.models.checkpoints.reading import read_state_dict
from tests.models.checkpoints.checkpoint_files import old_format, saved


@pytest.mark.parametrize(
    "write",
    [saved, pytest.param(old_format, marks=pytest.mark.sweep("by day the format of today"))],
)
def test_a_pickle_of_very_many_things_is_refused_before_it_is_built(
    write: Callable[[Any], bytes],
) -> None:
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        read_state_dict(write([[] for _ in range(2_000_000)]))
