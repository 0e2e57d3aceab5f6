import json
import sys
import time

import pytest
import torch

import hookviz
from hookviz.models.checkpoints.reading import read_state_dict
from hookviz.reader import wall
from tests.models.checkpoints.checkpoint_files import saved


def test_a_pickle_of_very_many_things_is_refused_before_it_is_built() -> None:
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        read_state_dict(saved([[] for _ in range(2_000_000)]))


def test_a_header_of_very_many_tensors_is_refused_before_the_library_reads_it() -> None:
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{number}": empty for number in range(70_000)}).encode()
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        read_state_dict(len(header).to_bytes(8, "little") + header)


@pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")
def test_pickles_are_followed_behind_the_wall() -> None:
    """The app's own processors are hardly used, so that it answers others meanwhile."""
    refused = saved([*range(400_000), bytearray(1)])
    here = time_of_refusal(refused)
    wall.put_up()
    try:
        assert set(read_state_dict(saved({"weight": torch.ones(2)}))) == {"weight"}
        assert time_of_refusal(refused) < here / 2
    finally:
        wall.take_down()


def time_of_refusal(data: bytes) -> float:
    begun = time.thread_time()
    with pytest.raises(hookviz.WeightsError, match=r"a\.pth.*bytearray"):
        read_state_dict(data, "a.pth")
    return time.thread_time() - begun
