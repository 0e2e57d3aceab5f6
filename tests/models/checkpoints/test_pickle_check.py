"""What torch's reader would do for a hostile pickle, found before it does it."""

import io
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress

import pytest
import torch

import hookviz
from hookviz.models.checkpoints.files import read_state_dict
from tests.hostile_checkpoints import HOSTILE, old_format, saved, storage, tensor, with_weights


@pytest.mark.parametrize("write", [saved, old_format])
@pytest.mark.parametrize("body", HOSTILE)
def test_what_would_do_harm_is_refused_before_torch_reads_it(
    body: Callable[[], bytes],
    write: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[object] = []
    monkeypatch.setattr(torch, "load", lambda *given, **_: reads.append(given))
    with suppress(hookviz.WeightsError):
        read_state_dict(write(body()))
    assert reads == []


@pytest.mark.parametrize("is_zip", [True, False])
def test_what_training_scripts_keep_is_read(is_zip: bool) -> None:
    weights = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(weights.parameters())
    weights(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    base = torch.arange(24.0)
    state_dict: dict[str, torch.Tensor] = {
        **weights.state_dict(),
        "view": base[4:16].view(3, 4).t(),
        "tied": base,
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "none": torch.empty(0, 3),
        "count": torch.tensor(3),
    }
    kept = {
        "model": state_dict,
        "optimizer": optimizer.state_dict(),
        "history": OrderedDict([(1, 0.5), (2, None)]),
        "milestones": Counter({30: 1}),
        "args": {"lr": 0.1, "size": torch.Size([3, 2]), "type": torch.float16, "betas": (0.9, 1)},
    }
    file = io.BytesIO()
    torch.save(kept, file, _use_new_zipfile_serialization=is_zip)
    read = read_state_dict(file.getvalue())
    write = saved if is_zip else old_format
    inside = read_state_dict(write(with_weights(tensor(storage(4), 1, 3, 1))))
    assert torch.equal(inside["weight"], torch.zeros(3))  # within its storage
    assert list(read) == list(state_dict)
    assert all(torch.equal(read[name], value) for name, value in state_dict.items())
