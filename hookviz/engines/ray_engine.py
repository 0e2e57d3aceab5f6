"""Run a job in processes of a Ray cluster, each with a model of its own."""

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass

from hookviz.engines import ray_cluster
from hookviz.engines.engine import ReportImages, Result, Shard, Work
from hookviz.engines.ray_job import RayJob


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
            job = RayJob(work, shards, report, nodes, self.patience)
            with closing(job.results()) as results:
                yield from results
