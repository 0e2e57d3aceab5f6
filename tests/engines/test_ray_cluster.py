import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'hookviz[ray]'")

from hookviz.engines import ray_cluster
from hookviz.errors import EngineError

pytestmark = pytest.mark.rest

ROOT = Path(__file__).parent.parent.parent


def test_the_cluster_that_is_there_is_used_and_left(cluster: None) -> None:
    with ray_cluster.joined("ray://nobody.invalid:10001", None):
        nodes = ray_cluster.slots(None, gpu=False)
    assert len(nodes) == 2
    assert len(set(nodes)) == 1
    assert ray_cluster.is_alive(nodes[0])
    assert nodes[0].host == socket.gethostname()
    assert ray_cluster.free_processors().endswith("of 2 processors")
    assert ray_cluster.slots(1, gpu=False) == nodes[:1]


def test_a_model_on_a_gpu_asks_for_nodes_with_one(cluster: None) -> None:
    with pytest.raises(EngineError, match=r"No node .* has a GPU.*device='cpu'"):
        ray_cluster.slots(None, gpu=True)


def test_workers_take_turns_among_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (ray_cluster.Node(key * 56, f"host-{key}", f"10.0.0.{key}") for key in "123")
    monkeypatch.setattr(
        ray_cluster, "_nodes", lambda: [(a, {"CPU": 1.0}), (b, {"CPU": 3.0}), (c, {})]
    )
    assert ray_cluster.slots(None, gpu=False) == [a, b, b, b]
    assert str(a) == "node host-1 (10.0.0.1, 11111111)"


PROGRAM = """
import sys, time, hookviz
from hookviz.engines import ray_cluster
import ray
for address in sys.argv[1:]:
    began = time.monotonic()
    try:
        with ray_cluster.joined(address, None):
            pass
    except hookviz.EngineError as error:
        print(error)
    assert not ray.is_initialized()
    assert time.monotonic() - began < 30
"""


def test_an_address_without_a_cluster_is_told_within_seconds() -> None:
    with socket.socket() as unused:  # bound, and nobody listens
        unused.bind(("127.0.0.1", 0))
        addresses = [f"ray://127.0.0.1:{unused.getsockname()[1]}", "ray://127.0.0.1"]
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *addresses],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    for address in addresses:
        assert f"There is no Ray cluster at '{address}' that could be used" in run.stdout
    assert "Connection refused" in run.stdout
    assert "an address is ray://HOST:PORT" in run.stdout
    assert "engine='local' needs none" in run.stdout
