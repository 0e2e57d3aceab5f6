import json
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


def test_a_header_of_very_many_tensors_is_refused_before_the_library_reads_it() -> None:
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{number}": empty for number in range(70_000)}).encode()
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        read_state_dict(len(header).to_bytes(8, "little") + header)
