import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import hookviz
from tests.networks import Tiny, hook_count, random_input, seeded

ROOT = Path(__file__).parent.parent.parent


def test_the_debugger_opens_where_the_layer_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def note() -> None:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        seen.append(frame.f_back.f_locals["call"])

    monkeypatch.setattr(sys, "breakpointhook", note)
    network, image = seeded(Tiny), random_input(1)
    plain = network(image)
    with hookviz.pause_at(network, "relu"):
        assert torch.equal(network(image), plain)
    assert [(call.layer, call.index) for call in seen] == [("relu", 0), ("relu", 1)]
    assert hook_count(network) == 0
    network(image)
    assert len(seen) == 2
    shapes: list[int] = []
    with hookviz.pause_at(network, "conv*", lambda call: shapes.append(call.output.shape[1])):
        network(image)  # a function of one's own looks instead
    assert shapes == [4, 6]
    with (
        pytest.raises(hookviz.UnknownLayerError, match="conv1"),
        hookviz.pause_at(network, "conf1"),
    ):
        pytest.fail("the block must not run")


PROGRAM = """
import torch, hookviz
network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
try:
    with hookviz.pause_at(network, None):
        network(torch.ones(1, 3, 8, 8))
finally:
    print("hooks", len(network[0]._forward_hooks), len(network[1]._forward_hooks))
"""


def test_a_person_types_into_the_debugger(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, path],
        input="p tuple(call.output.shape)\nc\np call.layer\nq\n",
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONBREAKPOINT": ""},
        timeout=300,
    )
    assert done.returncode == 1, done.stderr  # it was quit
    assert "hooks 0 0" in done.stdout
    assert "(1, 4, 6, 6)" in done.stdout
