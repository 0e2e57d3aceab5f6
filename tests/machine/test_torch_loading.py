"""Tests for loading torch and torchvision, each in a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOAD = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from hookviz.machine import torch_loading
torch_loading.load_beside()
for thread in threading.enumerate():
    if thread.name == "torch-libraries":
        thread.join()
"""


def run(code: str, *options: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, *options, "-W", "ignore", "-c", LOAD + code, str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not ended.stderr, ended.stderr
    return ended.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_they_are_there_before_torch_is_and_torch_computes_with_them() -> None:
    said = run("""
maps = open("/proc/self/maps").read()
print("libtorch_cpu.so" in maps, "torch" in sys.modules)
import torch
print(float(torch.ones(3).sum()), open("/proc/self/maps").read().count("libtorch_cpu.so") > 0)
kept = {line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu.so" in line}
print(len(kept))
""")
    assert said == ["True", "False", "3.0", "True", "1"]


def test_where_torch_is_not_installed_nothing_happens() -> None:
    said = run(
        """
print("torch" in open("/proc/self/maps").read() if sys.platform == "linux" else False)
""",
        "-I",
        "-S",
    )
    assert said == ["False"]


def test_torchvision_works_without_the_compiler_and_compiles_once_somebody_asks_for_it() -> None:
    program = """
import sys
from hookviz.machine.torch_loading import import_torchvision
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
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == [
        "1.0",
        "1",
        "3",
        *["False", "True", "True", "True", "True"],
        *("tensor([2.])", "True"),
    ]
