"""Hunt for networks that HookViz shows wrongly: random ones, each against plain hooks.

    python -m scripts.random_networks 2000

Every network comes of a seed, so a second call tries the same ones; `--first` begins elsewhere.
Those that do not run by themselves are not counted. Returns 1 where anything was wrong.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from itertools import count
from random import Random

import torch

from tests.network_trial import trial
from tests.random_networks import DTYPES, FEATURES, random_description

VERDICTS = ("right", "wrong", "refused")


def main() -> int:
    """Try the networks, print what was found, and how often each feature came up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("networks", type=int, nargs="?", default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first network's seed")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the networks are tiny
    started = time.monotonic()
    totals: Counter[str] = Counter()
    by_feature: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for seed in count(arguments.first):
        if sum(totals[verdict] for verdict in VERDICTS) == arguments.networks:
            break
        description = random_description(Random(seed))  # noqa: S311 - nothing is secret here
        outcome = trial(description)
        verdict = "wrong" if outcome.wrong else "refused" if outcome.refused else "right"
        if not outcome.runs:
            totals["does not run"] += 1
            continue
        totals[verdict] += 1
        for feature in description.features:
            by_feature[feature][verdict] += 1
        for said in (*outcome.wrong, *outcome.refused):
            print(f"{verdict} {seed}: {said}\n  {description}", flush=True)
    print(f"| feature | networks | {' | '.join(VERDICTS)} |\n|---|---:|---:|---:|---:|")
    for feature in (*DTYPES, *FEATURES, "writes_its_input"):
        found = by_feature[feature]
        counts = " | ".join(f"{found[verdict]:,}" for verdict in VERDICTS)
        print(f"| {feature} | {found.total():,} | {counts} |")
    counts = ", ".join(f"{totals[verdict]:,} {verdict}" for verdict in (*VERDICTS, "does not run"))
    print(f"\n{counts}; {(time.monotonic() - started) / 60:.1f} minutes on one core")
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
