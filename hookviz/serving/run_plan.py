"""How many runs go on at once, and on how many threads each."""

from typing import NamedTuple


class RunPlan(NamedTuple):
    """How the cores are shared out.

    Attributes:
        runs: how many compute at once.
        threads: of each run.
    """

    runs: int
    threads: int


def plan(runs: int, threads: int, cores: int, memory: int) -> RunPlan:
    """How many runs at once, and threads for each, so that together they fill the cores.

    At least two at once, so that one long run does not hold up everybody, and one for every four
    cores; at most one for every gigabyte.

    Args:
        runs: what was chosen; 0 for automatic.
        threads: what was chosen; 0 for automatic.
        cores: processors that there are; 0 for less than one.
        memory: bytes that there are.
    """
    runs = runs or max(1, min(max(2, cores // 4), memory >> 30))
    return RunPlan(runs, threads or max(1, cores // runs))
