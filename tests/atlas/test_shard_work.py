"""A shard's work as an engine sends it to another process, and its tally as it comes back."""

import pickle
from pathlib import Path

import numpy as np

from hookviz.atlas.channel_table import table_by
from hookviz.atlas.plan import Plan
from hookviz.atlas.shard_work import ShardWork, TallyShard
from hookviz.atlas.sources import sources
from hookviz.atlas.tally import SUMS, Tally
from hookviz.types import Model
from tests.atlas.folders import save_folder


def nobody(_done: float, _left_out: int) -> None: ...


def test_work_that_was_sent_gives_the_tally_that_it_gives_here(tiny: Model, tmp_path: Path) -> None:
    for number, name in enumerate(("cats", "dogs")):
        save_folder(tmp_path / name, 6, first=6 * number)
    (tmp_path / "cats" / "002.png").write_bytes(b"no image")
    listed = sources(tmp_path)
    plan = Plan(tiny, listed, table_by(tiny, listed[0].image, None), top=3, batch=4)
    work = ShardWork(plan)
    sent = pickle.loads(pickle.dumps(work))  # noqa: S301 - ours
    joined = [Tally.empty(plan.table.channels, 3, 2) for _ in range(2)]
    for indices in (range(8), range(8, 12)):
        shard = TallyShard.of(plan, indices, joined[0].top.least.copy())
        joined[0].merge(work(shard, nobody))
        tally = sent(pickle.loads(pickle.dumps(shard)), nobody)  # noqa: S301 - ours
        joined[1].merge(pickle.loads(pickle.dumps(tally)))  # noqa: S301 - ours
    here, back = joined
    for name in (*SUMS, "tallied", "repeated", "left_out", "left_out_count", "digests"):
        np.testing.assert_equal(getattr(back, name), getattr(here, name))
    for name in ("values", "indices", "cells"):
        np.testing.assert_array_equal(getattr(back.top, name), getattr(here.top, name))
    assert (here.tallied, list(here.left_out)) == (11, [2])
