import io
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.networks import Tiny, hook_count, random_input, seeded


def printed(network: nn.Module, example: Any, **options: Any) -> tuple[Any, list[list[str]]]:
    """What the network put out, and the columns of each line."""
    file = io.StringIO()
    output = hookviz.summary(network, example, file=file, **options)
    return output, [re.split(r"\s{2,}", line) for line in file.getvalue().splitlines()]


def test_every_layer_is_printed_as_it_runs_for_a_batch() -> None:
    network, batch = seeded(Tiny), torch.cat([random_input(0), random_input(1)])
    output, lines = printed(network, batch)
    with torch.no_grad():
        assert torch.equal(output, network(batch))
    assert [[name, kind, size, shapes] for name, kind, _, size, shapes in lines] == [
        ["conv1", "Conv2d", "8.2 kB", "2×3×16×16 → 2×4×16×16"],
        ["relu", "ReLU", "0 bytes", "2×4×16×16 → 2×4×16×16"],
        ["conv2", "Conv2d", "2.4 kB", "2×4×16×16 → 2×6×7×7"],
        ["relu", "ReLU", "0 bytes", "2×6×7×7 → 2×6×7×7"],
        ["head", "Linear", "40 bytes", "2×6 → 2×5"],
    ]
    assert all(re.fullmatch(r"\d+\.\d\d ms", taken) for _, _, taken, _, _ in lines)
    assert not output.requires_grad
    assert hook_count(network) == 0
    norms = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    before = {name: buffer.clone() for name, buffer in norms.named_buffers()}
    printed(norms, batch)
    assert all(torch.equal(buffer, before[name]) for name, buffer in norms.named_buffers())
    assert norms.training


def test_depth_tells_children_from_their_parts() -> None:
    inner = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    network = nn.Sequential(nn.Sigmoid(), inner)
    given = torch.ones(1, 2)
    for depth, names in (
        (None, ["0", "1.0", "1.1.0"]),
        (1, ["0", "1"]),
        (2, ["0", "1.0", "1.1"]),
        (9, ["0", "1.0", "1.1.0"]),
    ):
        assert [line[0] for line in printed(network, given, depth=depth)[1]] == names
    for wrong in (0, True, "1"):
        with pytest.raises(hookviz.SettingError, match="depth="):
            hookviz.summary(network, given, depth=wrong)  # type: ignore[arg-type]


def test_a_pass_that_fails_says_where_and_runs_once() -> None:
    network = seeded(Tiny)
    network.head = nn.Linear(7, 5)
    runs: list[int] = []
    theirs = network.register_forward_pre_hook(lambda *_: runs.append(1))
    file = io.StringIO()
    with pytest.raises(hookviz.ModelError) as caught:
        hookviz.summary(network, random_input(0), file=file)
    assert str(caught.value).startswith(
        "This Tiny can't take the example: head (Linear), which takes 7 numbers along the last "
        "dimension, fails on 1×6, after relu, conv2, relu and 1 before: "
    )
    assert file.getvalue().count("\n") == 4
    assert len(runs) == 1
    theirs.remove()
    assert hook_count(network) == 0


def test_compiled_parts_are_printed_layer_by_layer() -> None:
    inner = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    part: Any = torch.compile(inner, backend="eager")
    network = nn.Sequential(nn.Tanh(), part)
    given = torch.ones(1, 2)
    for given_network in (network, nn.DataParallel(network), torch.compile(network)):
        output, lines = printed(given_network, given)  # type: ignore[arg-type]
        assert torch.equal(output, inner(given.tanh()))
        assert [line[:2] for line in lines] == [["0", "Tanh"], ["1.0", "Linear"], ["1.1", "ReLU"]]
    assert [line[:2] for line in printed(network, given, depth=1)[1]][1] == ["1", "Sequential"]
    with (
        pytest.warns(RuntimeWarning, match=r"saw no call of 1\.0 and 1\.1: a program"),
        hookviz.observe(network, None),
    ):
        network(given)  # as it was compiled, like before
    with pytest.raises(hookviz.ModelError, match="not function"):
        hookviz.summary(printed, given)  # type: ignore[arg-type]


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Bilinear(2, 3, 1)

    def forward(self, left: Tensor, right: Tensor) -> dict[str, Tensor]:
        return {"both": self.part(left, right)}


@pytest.mark.parametrize(
    "example",
    [
        (torch.ones(1, 2), torch.ones(1, 3)),
        {"left": torch.ones(1, 2), "right": torch.ones(1, 3)},
    ],
)
def test_several_arguments_by_place_or_by_name(example: Any) -> None:
    assert printed(Pair(), example)[1][0][-1] == "1×2, 1×3 → 1×1"
