"""Run a job in processes of a Ray cluster, each with a model of its own."""

import logging
import socket
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from hookviz.engines import ray_cluster
from hookviz.engines.engine import ReportImages, Result, Shard, Work
from hookviz.engines.ray_cluster import Node
from hookviz.engines.ray_job import RayJob

_log = logging.getLogger(__name__)


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
        with ray_cluster.joined(self.address, self.workers):
            nodes = ray_cluster.slots(self.workers, gpu=work.needs.gpu)
            _warn_of_one_machine(nodes)
            job = RayJob(work, shards, report, nodes, self.patience)
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
