"""Run shards of a job in one worker of a Ray cluster, one at a time.

This file travels to the nodes as it is and imports nothing of HookViz, so that a node on which
HookViz is missing, or is another one, can say so itself.
"""

import importlib
import os
import pickle
import socket
import traceback
from typing import Any

import ray

OK, FAILED, CRASHED = "ok", "failed", "crashed"
BESIDE = "beside"
"""The concurrency group of what is asked of a worker while it works."""


class Worker:
    """Ray actor that keeps a job's work.

    What goes wrong is a result, not an exception: one of the words above, and the reason.
    """

    def __init__(self) -> None:
        self._work: Any = None
        self._progress: tuple[int, float, int] = (-1, 0, 0)

    def load(self, packed: list[Any], version: str, files: tuple[str, ...]) -> tuple[str, Any]:
        """Unpack the work, which the cluster brings to each node once.

        Args:
            packed: a reference to its bytes.
            version: of the HookViz that packed them.
            files: paths that have to be seen here.
        """
        try:
            own = importlib.import_module("hookviz").__version__
            if own != version:
                return FAILED, f"it has HookViz {own}, and the job is of HookViz {version}"
            self._work = pickle.loads(ray.get(packed[0]))  # noqa: S301 - of the job's own process
        except MemoryError:
            return FAILED, "it has not enough memory for the model"
        except Exception as error:  # noqa: BLE001 - whatever a person's own module raises
            return FAILED, f"the model can't be loaded there: {type(error).__name__}: {error}"
        unseen = next((path for path in files if not os.path.exists(path)), None)  # noqa: PTH110
        if unseen is not None:
            return FAILED, f"{unseen!r} is not to be seen there"
        return OK, (os.getpid(), socket.gethostname())

    def do(self, number: int, shard: Any) -> tuple[tuple[str, Any, float, int], Any]:
        """Compute a shard, and return its outcome with its last progress, and its result."""
        self._progress = number, 0, 0

        def report(done: float, left_out: int) -> None:
            self._progress = number, done, left_out

        try:
            result = self._work(shard, report)
        except Exception as error:  # noqa: BLE001 - the job's own errors, and everybody's bugs
            return self._raised(error), None
        return (OK, None, *self._progress[1:]), result

    @ray.method(concurrency_group=BESIDE)  # type: ignore[untyped-decorator, unused-ignore]
    def progress(self) -> tuple[int, float, int]:
        """Return the number of its shard, and how many images are done and left out."""
        return self._progress

    def _raised(self, error: Exception) -> tuple[str, Any, float, int]:
        if isinstance(error, importlib.import_module("hookviz").HookVizError):
            return FAILED, error, 0, 0
        if isinstance(error, MemoryError):
            return FAILED, "it ran out of memory", 0, 0
        return CRASHED, traceback.format_exc(), 0, 0
