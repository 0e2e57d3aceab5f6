"""Hunt for networks that HookViz shows wrongly: random ones, each against plain hooks.

    python -m scripts.random_networks 2000

Every network comes of a seed, so a second call tries the same ones; `--first` begins elsewhere, and
`--kind` draws one kind alone. Those that do not run by themselves are not counted. Prints a table
by kind: how many were drawn, how many of them wrong, ended in a traceback, or refused by a
`HookVizError`. Returns 1 where anything was wrong or ended in a traceback.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from random import Random

import torch

from tests.network_trial import Outcome, trial
from tests.random_kinds import KINDS
from tests.random_networks import Description, random_description

VERDICTS = ("wrong", "raw", "refused")
HEADINGS = ("wrong", "raw tracebacks", "refused")

Tried = tuple[int, Description, Outcome, float]


def main() -> int:
    """Try the networks, and print what was found, kind by kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("networks", type=int, nargs="?", default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first network's seed")
    parser.add_argument("--kind", default="", choices=("", *KINDS), help="draw this kind alone")
    parser.add_argument("--workers", type=int, default=2, help="processes, each with one thread")
    arguments = parser.parse_args()
    started = time.monotonic()
    total: Counter[str] = Counter()
    by_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
    longest = (0.0, 0)
    for seed, description, outcome, seconds in _tried(arguments):
        if not outcome.runs:
            total["does not run"] += 1
            continue
        longest = max(longest, (seconds, seed))
        found = ["drawn", *(verdict for verdict in VERDICTS if getattr(outcome, verdict))]
        for counts in (total, *(by_kind[kind] for kind in description.kinds)):
            counts.update(found)
        for verdict in VERDICTS:
            for said in getattr(outcome, verdict):
                print(f"{verdict} {seed}: {said}")
        if len(found) > 1:
            print(f"  {description}", flush=True)
    _print_table(total, by_kind)
    print(f"\n{total['does not run']:,} more did not run by themselves.")
    print(f"Seed {longest[1]} took longest, {longest[0]:.1f} s.")
    print(f"{(time.monotonic() - started) / 60:.1f} minutes in {arguments.workers} processes")
    return 1 if total["wrong"] or total["raw"] else 0


def _tried(arguments: argparse.Namespace) -> Iterator[Tried]:
    """Try networks until as many as asked for have run; return them, and those that do not run."""
    attempt = partial(_attempt, kind=arguments.kind)
    seed, missing = arguments.first, arguments.networks
    while missing:
        seeds = range(seed, seed + missing)
        for tried in _each(attempt, seeds, arguments.workers):
            seed += 1
            missing -= tried[2].runs
            yield tried


def _each(
    attempt: partial[Tried], seeds: Sequence[int], workers: int, at_once: int = 4
) -> Iterator[Tried]:
    """Yield the attempts in order; one that ends its process is reported, and the others go on."""
    done = 0
    try:
        with ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), torch.set_num_threads, (1,)
        ) as pool:
            for tried in pool.map(attempt, seeds, chunksize=at_once):
                done += 1
                yield tried
    except BrokenProcessPool:
        left = seeds[done:]
        if len(left) == 1:
            description = random_description(Random(left[0]), attempt.keywords["kind"])  # noqa: S311
            yield left[0], description, Outcome(raw=("the process ended",)), 0.0
            return
        # those that were on their way, one by one; then as many together as before
        some = min(len(left), workers * at_once)
        for one in left[:some]:
            yield from _each(attempt, [one], 1, 1)
        yield from _each(attempt, left[some:], workers, at_once)


def _attempt(seed: int, kind: str) -> Tried:
    description = random_description(Random(seed), kind)  # noqa: S311 - nothing is secret here
    started = time.monotonic()
    outcome = trial(description)
    return seed, description, outcome, time.monotonic() - started


def _print_table(total: Counter[str], by_kind: dict[str, Counter[str]]) -> None:
    print(f"| networks with | drawn | {' | '.join(HEADINGS)} |\n|---|---:|---:|---:|---:|")
    for kind, counts in (("**any of it**", total), *((kind, by_kind[kind]) for kind in KINDS)):
        row = " | ".join(f"{counts[column]:,}" for column in ("drawn", *VERDICTS))
        print(f"| {kind} | {row} |")


if __name__ == "__main__":
    sys.exit(main())
