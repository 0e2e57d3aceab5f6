import threading
from queue import SimpleQueue

import pytest
import torch
from torch import Tensor, nn

from hookviz.explaining.fx_graph import (
    arguments_of,
    is_batch_size,
    reads_batch_size_only,
    trace_graph,
)

SEEN = SimpleQueue[object]()  # a list would be as it was afterwards
CALL = nn.Module.__call__
OTHER = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())


def _meanwhile(values: Tensor) -> Tensor:
    thread = threading.Thread(target=lambda: SEEN.put(OTHER(torch.ones(1, 3, 8, 8)).shape))
    thread.start()
    thread.join()
    SEEN.put(nn.Module.__call__ is CALL)
    return values


class Meanwhile(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.conv(_meanwhile(images))
        return values


def test_passes_in_other_threads_go_on_while_it_traces() -> None:
    """`torch.fx.symbolic_trace` changes `nn.Module` itself for as long as it traces."""
    graph = trace_graph(Meanwhile())
    assert [node.target for node in graph.nodes] == ["images", "conv", "output"]
    assert [SEEN.get(timeout=0) for _ in range(SEEN.qsize())] == [(1, 4, 6, 6), True]


class Sizes(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        count, channels = images.size(0), images.shape[1]
        return images.reshape(count, -1).mean(1, keepdim=True) + channels


def test_it_is_known_which_nodes_read_the_batch_size_alone() -> None:
    nodes = {node.name: node for node in trace_graph(Sizes()).nodes}
    assert is_batch_size(nodes["size"])
    assert reads_batch_size_only(nodes["size"])
    assert not is_batch_size(nodes["getitem"])
    assert not reads_batch_size_only(nodes["getattr_1"])
    assert not any(map(is_batch_size, (nodes["reshape"], -1)))


@pytest.mark.parametrize(
    ("defaults", "arguments"), [({"dim": None, "keepdim": False}, [1, True]), ({}, [])]
)
def test_arguments_are_read_by_position_or_name(
    defaults: dict[str, object], arguments: list[object]
) -> None:
    (mean,) = (node for node in trace_graph(Sizes()).nodes if node.name == "mean")
    assert arguments_of(mean, **defaults) == arguments
