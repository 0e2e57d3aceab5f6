"""The image built and run for real, where a program that can do so is named.

`BUILD_IMAGE` is called as ``PROGRAM CONTEXT TAG [ARGUMENT…]`` to build, with docker build's own
arguments, and as ``PROGRAM --run TAG -- COMMAND…`` to run a command in the image as its user.
`TORCH_INDEX` is passed on, for machines that don't reach the default one.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from scripts.servers import free_port
from tests.container.test_image import LAST, of

ROOT = Path(__file__).parent.parent.parent
TAG = "hookviz-test"

INSIDE = """
import importlib.util, json, os, signal, subprocess, sys, time
command, check, port = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
os.environ["STREAMLIT_SERVER_PORT"] = port
check = [part.replace("8501", port) for part in check]
app = subprocess.Popen(command, stdout=subprocess.DEVNULL)
started, healthy = time.monotonic(), False
while not healthy and time.monotonic() - started < 120 and app.poll() is None:
    healthy = subprocess.call(check, stderr=subprocess.DEVNULL) == 0
    time.sleep(0.2)
app.send_signal(signal.SIGTERM)
with open("/opt/hookviz/sbom.cdx.json") as file:
    listed = {part["name"].lower() for part in json.load(file)["components"]}
print(json.dumps({
    "user": os.getuid(),
    "healthy": healthy,
    "ended": app.wait(60),
    "pip": importlib.util.find_spec("pip") is not None,
    "listed": sorted(listed & {"torch", "streamlit", "pillow"}),
    "beside the app": sorted(os.listdir()),
    "may write": [path for path in ("/app", "/opt/hookviz", "/home/app/.cache/torch")
                  if os.access(path, os.W_OK)],
}))
"""


@pytest.mark.sweep("by day what its lines say: test_image.py")
@pytest.mark.timeout(1800)
@pytest.mark.skipif("BUILD_IMAGE" not in os.environ, reason="BUILD_IMAGE names no builder")
def test_the_image_builds_runs_and_ends() -> None:
    builder = os.environ["BUILD_IMAGE"]
    index = os.environ.get("TORCH_INDEX")
    options = [] if index is None else [f"--build-arg=TORCH_INDEX={index}"]
    subprocess.run([builder, ROOT, TAG, "--layers", *options], check=True, timeout=1500)
    (command,) = of(LAST, "CMD")
    (check,) = of(LAST, "HEALTHCHECK")
    inside = ["python", "-c", INSIDE, command, check.partition("CMD ")[2], str(free_port())]
    done = subprocess.run(
        [builder, "--run", TAG, "--", *inside], check=True, timeout=300, stdout=subprocess.PIPE
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "user": 10001,
        "healthy": True,
        "ended": -15,  # not process 1 here
        "pip": False,
        "listed": ["pillow", "streamlit", "torch"],
        "beside the app": [".streamlit", "__pycache__", "app.py", "assets", "hookviz"],
        "may write": ["/home/app/.cache/torch"],
    }
