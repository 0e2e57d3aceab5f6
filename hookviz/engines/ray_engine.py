"""Run a job in processes of a Ray cluster, each with a model of its own.

`RayEngine` joins the cluster and lists its nodes. A `_RayJob` assigns shards to workers, and
replaces workers that are lost.
"""

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any, Generic

import ray
from ray import cloudpickle
from ray.exceptions import ActorUnschedulableError, OutOfMemoryError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import hookviz
from hookviz.engines import ray_worker
from hookviz.engines.engine import ReportImages, Result, Shard, TotalProgress, Work
from hookviz.errors import EngineError, HookVizError, shorten
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
def connected(address: str | None, workers: int | None) -> Iterator[None]:
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
    workers_nodes = [node for row in zip_longest(*of_nodes) for node in row if node is not None]
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


_ATTEMPTS = 3
"""How often a shard is begun whose workers are lost, and a worker that does not come up."""

_AHEAD = 4  # shards a worker that may be done before one that others wait for
_POLL = 0.5  # seconds between two questions how far the workers are

cloudpickle.register_pickle_by_value(ray_worker)  # it comes to the nodes from here

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Slot:
    """Worker on a node, and the references to what it does."""

    node: Node
    actor: Any = None
    loading: Any = None  # reference to its answer that it is up
    status: Any = None  # reference to what became of its shard
    result: Any = None
    progress: Any = None
    number: int = -1  # of the shard
    starts: int = field(default=0)

    @property
    def waits_for(self) -> Any:
        return self.loading if self.loading is not None else self.status


class _RayJob(Generic[Shard, Result]):
    """Job that hands shards to workers, and yields their results in order."""

    def __init__(
        self,
        work: Work[Shard, Result],
        shards: Iterable[Shard],
        report: ReportImages,
        nodes: Sequence[Node],
        patience: float,
    ) -> None:
        self._work = work
        self._needs = work.needs
        self._more = enumerate(shards)
        self._total = TotalProgress(report)
        self._slots = [_Slot(node) for node in nodes]
        self._patience = patience
        self._packed: Any = None
        self._unfinished: dict[int, Shard] = {}  # those whose results were not yielded
        self._waiting: deque[int] = deque()
        self._done: dict[int, Any] = {}
        self._lost: dict[int, int] = {}
        self._next = 0  # number of the shard whose result is yielded next
        self._polled = 0.0

    def results(self) -> Generator[Result, None, None]:
        """Yield the results in order; whatever ends it, no worker is left."""
        try:
            self._packed = ray.put(_packed(self._work))
            for slot in self._slots:
                if self._pull():
                    self._start(slot)
            self._began = time.monotonic()
            while self._unfinished or self._pull():
                self._hand_out()
                self._wait()
                while self._next in self._done:
                    try:
                        result = ray.get(self._done.pop(self._next))
                    except RayError as error:  # the node that kept it is gone
                        self._retry(self._next, error, None)
                        break
                    del self._unfinished[self._next]
                    self._total.forget(self._next)
                    self._next += 1
                    yield result
        finally:
            for slot in self._slots:
                self._end(slot)

    def _pull(self) -> bool:
        """Take in one more shard; return whether there was one and not too many are done ahead."""
        ahead = len(self._unfinished) - len(self._waiting)
        if ahead >= _AHEAD * len(self._slots):
            return False
        for number, shard in islice(self._more, 1):
            self._unfinished[number] = shard
            self._waiting.append(number)
            return True
        return False

    def _hand_out(self) -> None:
        """Give a shard to each worker that has none."""
        for slot in self._slots:
            if slot.actor is None or slot.waits_for is not None:
                continue
            if not self._waiting and not self._pull():
                return
            slot.number = self._waiting.popleft()
            shard = self._unfinished[slot.number]
            slot.status, slot.result = slot.actor.do.options(num_returns=2).remote(
                slot.number, shard
            )

    def _wait(self) -> None:
        """Wait half a second at most, and take in what workers have finished."""
        by_ref = {slot.waits_for: slot for slot in self._slots if slot.waits_for is not None}
        if not by_ref:
            return
        ready, _ = ray.wait([*by_ref], num_returns=1, timeout=_POLL)
        for ref in ready:
            slot = by_ref[ref]
            try:
                if slot.loading is not None:
                    self._loaded(slot)
                else:
                    self._finished(slot)
            except RayTaskError:
                raise  # a bug, or a result that can't be brought here
            except RayError as error:
                self._replace(slot, error)
        if time.monotonic() - self._polled > _POLL:
            self._polled = time.monotonic()
            self._poll_progress()
        if all(slot.actor is None or slot.loading is not None for slot in self._slots):
            self._check_patience()
        else:
            self._began = time.monotonic()

    def _loaded(self, slot: _Slot) -> None:
        outcome, reason = ray.get(slot.loading)
        slot.loading = None
        if outcome != ray_worker.OK:
            raise EngineError(
                f"{_capital(slot.node)} can't work on this: {reason}. Install or mount there what "
                "is here, or use engine='local'."
            )

    def _finished(self, slot: _Slot) -> None:
        (outcome, reason, done, left_out), number = ray.get(slot.status), slot.number
        result, slot.status, slot.result, slot.number = slot.result, None, None, -1
        if outcome == ray_worker.FAILED and isinstance(reason, HookVizError):
            raise reason
        if outcome == ray_worker.FAILED:
            raise EngineError(
                f"{_capital(slot.node)} can't do {self._images_of(number)}: {reason}. Fewer "
                "workers, a smaller batch or a node with more memory would do."
            )
        if outcome == ray_worker.CRASHED:
            raise RuntimeError(f"On {slot.node}, with {self._images_of(number)}:\n{reason}")
        self._done[number] = result
        self._total.shard(number, done, left_out)

    def _poll_progress(self) -> None:
        """Report how far the shards are that are under way."""
        for slot in self._slots:
            if slot.status is None:
                continue
            if slot.progress is None:
                slot.progress = slot.actor.progress.remote()
            elif ray.wait([slot.progress], timeout=0)[0]:
                try:
                    number, done, left_out = ray.get(slot.progress)
                except RayError:
                    continue  # what became of its shard is told in its turn
                finally:
                    slot.progress = None
                if number == slot.number:
                    self._total.shard(number, done, left_out)

    def _replace(self, slot: _Slot, error: RayError) -> None:
        """Queue a lost worker's shard again, and start another worker in its place."""
        number, was_up = slot.number, slot.loading is None
        self._end(slot)
        if was_up:
            slot.starts = 0
            self._retry(number, error, slot.node)
        if isinstance(error, ActorUnschedulableError) or not is_alive(slot.node):
            self._slots.remove(slot)
            if not self._slots:
                raise EngineError(
                    f"No node of the Ray cluster is left, the last one lost is {slot.node}. "
                    "engine='local' needs none."
                ) from error
            return
        if slot.starts >= _ATTEMPTS:
            raise EngineError(
                f"{_capital(slot.node)} can't bring up a worker with this model: {_why(error)}, "
                f"{_ATTEMPTS} times. Fewer workers, or a node with more memory, would do."
            ) from error
        self._start(slot)

    def _retry(self, number: int, error: RayError, node: Node | None) -> None:
        """Queue a shard again, unless its workers were lost too often."""
        self._lost[number] = self._lost.get(number, 0) + 1
        if self._lost[number] >= _ATTEMPTS:
            where = f", last on {node}" if node else ""
            raise EngineError(
                f"The worker that had {self._images_of(number)} was lost {_ATTEMPTS} times{where}: "
                f"{_why(error)}. Leave these images out, or give fewer workers or a smaller batch "
                "where memory is short."
            ) from error
        self._waiting.appendleft(number)

    def _start(self, slot: _Slot) -> None:
        pinned = NodeAffinitySchedulingStrategy(slot.node.key, soft=False)
        options = {"num_gpus": 1} if self._needs.gpu else {}
        worker = ray.remote(concurrency_groups={ray_worker.BESIDE: 1})(ray_worker.Worker)
        slot.actor = worker.options(num_cpus=1, scheduling_strategy=pinned, **options).remote()
        slot.loading = slot.actor.load.remote(
            [self._packed], hookviz.__version__, self._needs.files
        )
        slot.starts += 1

    def _end(self, slot: _Slot) -> None:
        if slot.actor is not None:
            ray.kill(slot.actor, no_restart=True)
        slot.actor = slot.loading = slot.status = slot.result = slot.progress = None
        slot.number = -1

    def _images_of(self, number: int) -> str:
        """Name the images of a shard."""
        names = self._work.names(self._unfinished[number])
        first, last = shorten(names[0]), shorten(names[-1])
        return first if len(names) == 1 else f"the {len(names):,} images {first} … {last}"

    def _check_patience(self) -> None:
        """Raise where a job waits for a processor for too long."""
        if time.monotonic() - self._began > self._patience:
            raise EngineError(
                f"No worker came up within {self._patience:g} s: {free_processors()} "
                f"of the Ray cluster are free, and {self._slots[0].node} has none for it. Wait "
                "until others are done, or use engine='local'."
            )


def _packed(work: Work[Shard, Result]) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(work)
    except Exception as error:
        raise EngineError(
            f"The model can't be sent to the workers of a cluster: {shorten(str(error), 200)}. "
            "engine='local' takes it as it is."
        ) from error
    return packed


def _capital(node: Node) -> str:
    return f"N{str(node)[1:]}"


def _why(error: RayError) -> str:
    if isinstance(error, OutOfMemoryError):
        return "the node ran out of memory"
    return "its process ended, as one does that is killed or finds no memory"


@dataclass(frozen=True, slots=True)
class RayEngine:
    """`Engine` that runs shards in the workers of a Ray cluster.

    A shard whose worker is lost is done again by another one. What comes back is joined in the
    order of the shards, so that the result is that of one process.

    Attributes:
        address: ``ray://HOST:PORT``; None for what ``RAY_ADDRESS`` says, or else for a cluster of
            this machine's processors that is there for the time of a job. A process that is in a
            cluster already stays in that one.
        workers: how many of them at most; one for each processor by default.
        patience: seconds until a job ends for which the cluster has no processor free.
    """

    address: str | None = None
    workers: int | None = None
    patience: float = 120.0

    def __call__(
        self, work: Work[Shard, Result], shards: Iterable[Shard], report: ReportImages
    ) -> Generator[Result, None, None]:
        """Yield the result of `work` for each of `shards`, in their order.

        Raises:
            HookVizError: there is no cluster; a node can't load the model, or doesn't see the
                images; a shard's worker was lost again and again. And what the work raises.
        """
        with connected(self.address, self.workers):
            nodes = slots(self.workers, gpu=work.needs.gpu)
            _warn_of_one_machine(nodes)
            job = _RayJob(work, shards, report, nodes, self.patience)
            with closing(job.results()) as results:
                yield from results


def _warn_of_one_machine(nodes: Sequence[Node]) -> None:
    """Say what is slower on a cluster that is this machine alone, before the job begins.

    It has no more processors than this process. Each worker starts Python, torch and Ray first,
    some ten seconds, and the last shards leave workers idle, while torch's threads share out every
    pass.
    """
    if {node.host for node in nodes} == {socket.gethostname()}:
        _log.warning(
            "This Ray cluster has its workers (%d) on this machine alone, whose processors "
            "engine='local' uses too. That starts Python and torch in no other process, which "
            "takes ten seconds and more, and nothing of it waits for the last shards: it is "
            "faster, and for jobs of less than a minute by half.",
            len(nodes),
        )
