"""Measure how much faster a pass over many images is with more workers of Ray.

Draws images, makes the tallies of an atlas of them in this process and with 1, 2, … workers, and
prints what each took by the clock and of the processors, with what was moved. The start of the
cluster and of the workers, which a job pays once, stands beside the pass.

    .venv/bin/python -m scripts.scaling --model resnet50 --images 96 --workers 1 2
"""

import argparse
import pickle
import tempfile
import time
from pathlib import Path

import torch

import hookviz
from hookviz.atlas import plan as planning
from hookviz.atlas.plan import Plan, channel_table, sources
from hookviz.atlas.shard_work import ShardWork, TallyShard
from hookviz.atlas.tally import Tally
from hookviz.capturing.layer_trace import input_trace
from hookviz.engines.engine import Engine, ReportImages, engine_of
from hookviz.errors import HookVizError
from hookviz.lessons.drawings import draw
from hookviz.models.shapesnet import CATEGORIES


def main() -> None:
    """Measure, and print a row for each engine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--weights", default="random")
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--shard", type=int, default=16, help="images that a worker takes at once")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    torch.set_num_threads(1)  # as each worker has one
    planning._SHARD = asked.shard
    model = hookviz.load_model(asked.model, asked.weights)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(asked.images):
            drawn = draw(CATEGORIES[number % len(CATEGORIES)], 70_000_000 + number, 320)
            drawn.save(Path(folder) / f"{number:04}.jpg", quality=90)
        listed = sources(model, folder)
        table = channel_table(input_trace(model, hookviz.prepare_input(model, listed[0].image)))
        plan = Plan(model, listed, table)
        _tell_bytes(plan)
        _row("this process", plan, engine_of("local"))
        rates = [_row(f"Ray, {each}", plan, engine_of("ray", each)) for each in asked.workers]
        for workers, rate in zip(asked.workers, rates, strict=True):
            print(f"{workers} worker(s): {rate / rates[0]:.2f} × {asked.workers[0]} worker(s)")


def _tell_bytes(plan: Plan) -> None:
    work = ShardWork(plan)
    shard = plan.shards[0]
    empty = Tally.empty(plan.table.channels, plan.top, len(plan.classes))
    sent = TallyShard.of(plan, shard, empty.top.least)
    print(
        f"{plan.model.title}: the work {len(pickle.dumps(work)) / 1e6:.1f} MB once a node; a shard "
        f"{len(pickle.dumps(sent)) / 1e6:.2f} MB there, its tally "
        f"{len(pickle.dumps(empty)) / 1e6:.1f} MB back"
    )


class Measured:
    """Shard work that also counts the processor seconds that its process spent on it."""

    def __init__(self, work: ShardWork) -> None:
        self.work, self.needs = work, work.needs

    def names(self, shard: TallyShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(self, shard: TallyShard, report: ReportImages) -> tuple[Tally, float]:
        """Return the tally of a shard, and the seconds."""
        began = time.process_time()
        return self.work(shard, report), time.process_time() - began


def _row(name: str, plan: Plan, engine: Engine) -> float:
    """Print what one engine took; return images a second, from the first report on."""
    total = Tally.empty(plan.table.channels, plan.top, len(plan.classes))
    shards = (TallyShard.of(plan, each, total.top.least.copy()) for each in plan.shards)
    seen: list[tuple[float, float]] = []

    def tell(done: float, _left_out: int) -> None:
        seen.append((time.perf_counter(), done))

    began, own, of_work = time.perf_counter(), [0.0], [0.0]
    for tally, seconds in engine(Measured(ShardWork(plan)), shards, tell):
        total.merge(tally)
        of_work.append(seconds)
        own.append(time.process_time())
    whole, images = time.perf_counter() - began, len(plan.sources)
    joining = own[-1] - own[1]  # the start of the cluster is not in it
    joining -= sum(of_work[2:]) if "this process" in name else 0
    if total.tallied != images:
        raise HookVizError(f"Only {total.tallied} of {images} images went through.")
    start, done = seen[0]
    rate = (images - done) / (seen[-1][0] - start)
    print(
        f"{name:14} whole job {whole:5.1f} s, the first images after {start - began:4.1f} s, from "
        f"then on {rate:5.2f} images/s; processors: work {1000 * sum(of_work) / images:4.0f} ms an "
        f"image, bringing and joining {1000 * joining / (len(of_work) - 2):4.0f} ms a shard",
        flush=True,
    )
    return rate


if __name__ == "__main__":
    main()
