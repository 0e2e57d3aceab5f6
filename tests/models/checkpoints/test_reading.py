import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

import hookviz
from hookviz.models.checkpoints.reading import read_state_dict
from tests.models.checkpoints.checkpoint_files import STATE, old_format, same, saved


@pytest.mark.parametrize("write", [saved, old_format, safetensors.torch.save])
@pytest.mark.parametrize("file_name", ["w.pth", "w.safetensors", "w"])
def test_the_kind_is_told_by_content_and_not_by_name(
    tmp_path: Path, write: Callable[[Any], bytes], file_name: str
) -> None:
    data = write(STATE)
    (tmp_path / file_name).write_bytes(data)
    assert same(read_state_dict(tmp_path / file_name), STATE)
    assert same(read_state_dict(data, file_name), STATE)


def test_no_such_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(hookviz.WeightsError, match=r'There is no checkpoint .*none\.pth.*"random"'):
        read_state_dict(tmp_path / "none.pth")
    with pytest.raises(hookviz.WeightsError, match="it is a folder"):
        read_state_dict(tmp_path)
    with pytest.raises(hookviz.WeightsError, match="File name too long"):
        read_state_dict(tmp_path / ("x" * 3000))


@pytest.mark.parametrize("write", [saved, old_format, safetensors.torch.save])
def test_damage_anywhere_is_an_error_of_ours_or_harmless(write: Callable[[Any], bytes]) -> None:
    whole = write(STATE)
    rng = random.Random(5)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.25:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            read_state_dict(bytes(damaged))
        except hookviz.WeightsError:
            refused += 1
    assert refused > 400


def test_a_header_that_lies_about_sizes_takes_no_memory() -> None:
    header = b'{"w":{"dtype":"F32","shape":[100000000000],"data_offsets":[0,400000000000]}}'
    with pytest.raises(hookviz.WeightsError, match="cut short or damaged"):
        read_state_dict(len(header).to_bytes(8, "little") + header + bytes(64))
