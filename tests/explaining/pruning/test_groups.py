"""Which layers are found to take in a layer's channels, on networks whose answer is plain."""

import re
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import hookviz
from hookviz.explaining.pruning.groups import (
    PruningGroup,
    is_batch_size,
    pruning_groups,
    reads_batch_size_only,
    trace_graph,
)


class Two(nn.Module):
    """Two convolutions, and between them whatever a test puts there."""

    def __init__(self, between: Callable[[Tensor], Tensor], groups: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, groups=groups)
        self.between = between

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.second(self.between(self.first(images)))
        return output


FOLLOWED: dict[str, Callable[[Tensor], Tensor]] = {
    "module": nn.ReLU(),
    "several": nn.Sequential(nn.MaxPool2d(2), nn.Dropout(), nn.Hardswish()),
    "function": lambda values: F.max_pool2d(F.relu(values), 2),
    "method": lambda values: values.relu(),
    "looks at sizes": lambda values: values.relu() if values.size(0) is not None else values,
}


@pytest.mark.parametrize("between", FOLLOWED)
def test_channels_are_followed_through_what_works_on_each_by_itself(between: str) -> None:
    assert pruning_groups(Two(FOLLOWED[between]).eval())["first"] == PruningGroup(
        "first", (), {"second": False}
    )


REFUSED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a sum": (lambda values: values + values.mean(1, keepdim=True), "(mean|add) "),
    "a sum with itself": (lambda values: values + values, "add puts it together"),
    "a concatenation": (lambda values: torch.cat([values, values], 1)[:, :4], "cat puts it"),
    "not 0 at 0": (nn.Sigmoid(), r"between \(Sigmoid\) is not known to keep"),
    "over channels": (nn.GroupNorm(2, 4), r"between \(GroupNorm\) is not known"),
    "a choice of channels": (lambda values: values[:, [3, 2, 1, 0]], "getitem is not known"),
    "a softmax": (lambda values: values.softmax(1), "softmax is not known"),
    "a shuffle": (lambda values: values.view(-1, 2, 2, 8, 8).flatten(1, 2), "view is not known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_channels_are_not_followed_through_what_depends_on_others(name: str) -> None:
    between, reason = REFUSED[name]
    reason_given: Any = pruning_groups(Two(between).eval())["first"]
    assert re.search(reason, reason_given), reason_given


def test_grouped_convolutions_are_in_no_group() -> None:
    groups = pruning_groups(Two(nn.ReLU(), groups=4).eval())
    assert groups["first"] == "second (Conv2d) has 4 groups of channels"
    assert groups["second"] == "second (Conv2d) has 4 groups of channels"
    assert pruning_groups(Two(nn.ReLU()).eval())["second"] == (
        "second (Conv2d) is what the network puts out"
    )


class Heads(nn.Module):
    """A norm, and an end of several kinds."""

    def __init__(self, end: Callable[[Tensor], Tensor], columns: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.slopes = nn.PReLU(4)
        self.end = end
        self.head = nn.Linear(columns, 5)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.end(self.slopes(self.norm(self.conv(images)))))
        return scores


@pytest.mark.parametrize(
    ("end", "columns"),
    [
        (nn.Flatten(), 4 * 64),
        (lambda values: torch.flatten(F.avg_pool2d(values, 4), 1), 16),
        (lambda values: values.mean((2, 3)), 4),
        (lambda values: values.mean(dim=[-2, -1]), 4),
        (lambda values: values.view(values.size(0), -1), 256),
        (lambda values: values.reshape(values.shape[0], -1).relu(), 256),
    ],
)
def test_flattened_channels_have_columns(end: Callable[[Tensor], Tensor], columns: int) -> None:
    group = pruning_groups(Heads(end, columns).eval())["conv"]
    assert group == PruningGroup("conv", ("norm", "slopes"), {"head": True})


def test_a_linear_layer_over_rows_takes_in_no_channels() -> None:
    group = pruning_groups(Heads(nn.ReLU(), 8).eval())["conv"]
    assert group == "head (Linear) mixes the cells of a row, and not channels"


class Again(nn.Module):
    """A layer that runs twice, and one whose weights another one has as well."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Conv2d(3, 3, 1)
        self.one = nn.Conv2d(3, 3, 1)
        self.other = nn.Conv2d(3, 3, 1)
        self.other.weight = self.one.weight

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.other(self.one(self.twice(self.twice(images))))
        return output


def test_layers_that_serve_elsewhere_or_are_parametrised_are_left_alone() -> None:
    groups = pruning_groups(Again().eval())
    assert groups["twice"] == "twice runs 2 times"
    assert groups["one"] == "one shares its weights"
    normed = parametrizations.weight_norm(nn.Conv2d(3, 4, 1))
    network = nn.Sequential(normed, nn.Conv2d(4, 2, 1)).eval()
    assert "is a ParametrizedConv2d" in str(pruning_groups(network)["0"])


def test_code_that_branches_on_values_is_refused() -> None:
    class Undecided(Again):
        def forward(self, images: Tensor) -> Tensor:
            values = super().forward(images)
            return values if values.mean() > 0 else -values

    with pytest.raises(hookviz.ModelError, match="code of Undecided can't be followed"):
        pruning_groups(Undecided().eval())


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
