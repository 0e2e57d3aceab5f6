"""Tests for importing torchvision without torch's compiler, each in a fresh process."""

import subprocess
import sys


def run(code: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    return ended.stdout


def test_torchvision_works_without_the_compiler_and_compiles_once_somebody_asks_for_it() -> None:
    said = run("""
import sys
from hookviz.machine.torchvision_import import import_torchvision
import_torchvision()
import torch
from torchvision import models, ops
boxes = [torch.tensor([[0.0, 0, 4, 4]])]
print(float(ops.roi_align(torch.ones(1, 1, 8, 8), boxes, 1)))
with torch.inference_mode():
    print(*models.squeezenet1_1(num_classes=3).eval()(torch.zeros(1, 3, 64, 64)).shape)
kept = sys.modules["torchvision.ops.roi_align"].is_compile_supported
print("torch._dynamo" in sys.modules, kept("cpu"), "torch._dynamo" in sys.modules)
import torch._dynamo.utils
print(torch._dynamo.__file__ is not None, torch._dynamo.utils.is_compile_supported("cpu"))
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)))
before = sys.modules["torch._dynamo"]
import_torchvision()  # where it is imported already nothing is done
print(sys.modules["torch._dynamo"] is before)
""")
    assert said.split() == [
        "1.0",
        "1",
        "3",
        *["False", "True", "True", "True", "True"],
        *("tensor([2.])", "True"),
    ]
