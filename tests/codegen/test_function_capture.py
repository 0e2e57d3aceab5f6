"""What the lines of a script keep, against the functions called by hand."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from hookviz.codegen.function_capture import function_capture
from tests.capturing.test_function_trace import IMAGE, Article
from tests.networks import hook_count, seeded


def kept(network: nn.Module, name: str) -> list[Any]:
    names: dict[str, Any] = {"model": network, "batch": IMAGE[None], "torch": torch}
    names["TorchFunctionMode"] = TorchFunctionMode
    exec(function_capture(name, ""), names)  # noqa: S102 - what a person runs
    return list(names["outputs"])


@pytest.mark.parametrize("in_place", [False, True])
def test_the_lines_keep_what_the_function_puts_out(in_place: bool) -> None:
    network = seeded(lambda: Article(in_place))
    plain = seeded(Article)
    [rectified] = kept(network, "relu() after conv2")
    before = F.max_pool2d(torch.relu(plain.conv1(IMAGE[None])), 2)
    assert torch.equal(rectified, plain.conv2(before).relu())
    assert hook_count(plain) == 0
