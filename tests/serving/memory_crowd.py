"""Visitors who load networks and capture at 1024 pixels all at once: `python -m … [NAME ...]`."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import torch

import hookviz
from hookviz.capturing import engine
from hookviz.errors import HookVizError
from hookviz.machine.memory import MEGABYTE
from hookviz.models.catalog import find_model
from hookviz.serving import capacity, turns
from hookviz.serving.memory_reservations import pass_need
from hookviz.settings import settings
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice

LARGE = ("regnet_y_32gf", "vgg19", "wide_resnet101_2", "efficientnet_v2_l")
"""Networks that ended a server of 4 GB, with `HOOKVIZ_MODELS_MB` of 2500 and four runs."""

_INTO_GROUP = 'echo $$ > "$0"/cgroup.procs && exec "$@"'


def run_in_group(group: Path, names: Sequence[str], **environment: str) -> tuple[int, str]:
    """Run this program in a group; returns its exit status and what it printed.

    Args:
        group: the group's folder.
        names: the networks, one a visitor.
        environment: all of the program's environment.
    """
    program = [sys.executable, "-m", __name__, *names]
    done = subprocess.run(
        ["/bin/sh", "-c", _INTO_GROUP, str(group), *program],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _visit(number: int, name: str) -> None:
    try:
        _capture(number, name)
    except HookVizError as error:
        sys.stdout.write(f"{name} refused: {error}\n")
    else:
        sys.stdout.write(f"{name} captured\n")


def _capture(number: int, name: str) -> None:
    with resources.use_model(ModelChoice(find_model(name), "random")) as model:
        given = hookviz.prepare_input(model, torch.zeros(1, 3, 1024, 1024))
        cache = capacity.activation_budget().cache(settings().session_mb * MEGABYTE)
        first = hookviz.list_layers(model)[0].name
        with turns.turn(str(number), model.title, need=pass_need(model, given)):
            engine.capture(model, given, first, cache=cache)


if __name__ == "__main__":
    torch.set_num_threads(capacity.run_plan().threads)
    visitors = [
        threading.Thread(target=_visit, args=each) for each in enumerate(sys.argv[1:] or LARGE)
    ]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
