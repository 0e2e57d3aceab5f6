"""Join a Ray cluster for a job, and list its nodes."""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import ray

from hookviz.errors import EngineError, shorten
from hookviz.machine.memory import cores

_ANSWERS_WITHIN = 5.0  # seconds
_STARTS = 4  # of a cluster whose node is too slow
_INSTEAD = (
    "engine='ray' starts one on this machine for the time of the job, and engine='local' needs none"
)


@dataclass(frozen=True, slots=True)
class Node:
    """Node of the cluster: a machine, or one of several on a machine."""

    key: str
    host: str
    address: str

    def __str__(self) -> str:
        """Name the node so that a person finds it."""
        return f"node {self.host} ({self.address}, {self.key[:8]})"


@contextmanager
def joined(address: str | None, workers: int | None) -> Iterator[None]:
    """Connect to a cluster for the block; a connection that this process has is kept.

    Args:
        address: ``ray://HOST:PORT``; None for what ``RAY_ADDRESS`` says, or else for a cluster of
            this machine's processors that ends with the block.
        workers: how many processors that one offers; None for all that this process may use.

    Raises:
        EngineError: there is none at that address, or one of another version.
    """
    if ray.is_initialized():
        yield
        return
    where = address or os.environ.get("RAY_ADDRESS", "")
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if where and where != "local":
            _check_answer(where)
            ray.init(where, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of it
            os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns
            _start(num_cpus=workers or cores(), include_dashboard=False, **quiet)
    except Exception as error:
        reason = shorten(str(error).strip().partition("\n")[0], 200).rstrip(".")
        at = f"at {shorten(where)!r}" if where else "on this machine"
        raise EngineError(
            f"There is no Ray cluster {at} that could be used: {reason}. {_INSTEAD}."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _start(**options: Any) -> None:
    """Start a cluster on this machine, anew while its node is too slow.

    A node has 15 seconds to import its agent and 30 to answer, which can't be set. On a busy
    machine the import alone takes as long.
    """
    for attempt in range(1, _STARTS + 1):
        try:
            ray.init("local", **options)
        except Exception as error:
            if attempt == _STARTS or "timed out during startup" not in str(error):
                raise
            ray.shutdown()
        else:
            return


def slots(workers: int | None, *, gpu: bool) -> list[Node]:
    """Return a node for each worker, one for every processor or GPU, in turns among the nodes.

    Raises:
        EngineError: the cluster has none.
    """
    kind = "GPU" if gpu else "CPU"
    of_nodes = [[node] * int(resources.get(kind, 0)) for node, resources in _nodes()]
    workers_nodes = [node for turn in zip_longest(*of_nodes) for node in turn if node is not None]
    if not workers_nodes:
        what = "GPU, and the model is on one" if gpu else "processor"
        raise EngineError(
            f"No node of the Ray cluster has a {what}. "
            + ("Load the model with device='cpu'." if gpu else "engine='local' works without one.")
        )
    return workers_nodes[:workers]


def is_alive(node: Node) -> bool:
    """Return whether a node still belongs to the cluster."""
    return any(other == node for other, _ in _nodes())


def free_processors() -> str:
    """Say how many processors are free, of how many."""
    total, free = ray.cluster_resources().get("CPU", 0), ray.available_resources().get("CPU", 0)
    return f"{free:g} of {total:g} processors"


def _nodes() -> Sequence[tuple[Node, dict[str, float]]]:
    """Return the nodes that are alive, with their resources."""
    return [
        (
            Node(node["NodeID"], node["NodeManagerHostname"], node["NodeManagerAddress"]),
            node.get("Resources", {}),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def _check_answer(address: str) -> None:
    """Raise within seconds where nobody listens at ``HOST:PORT``; Ray itself waits for minutes."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not (host and port.isdigit()):
        if address == "auto":
            return
        raise ValueError("an address is ray://HOST:PORT, by default of port 10001")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_WITHIN):
        pass
