"""Time contestants in turns, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its time, and what it is compared with."""

    what: str
    milliseconds: float
    beside: str
    ratio: float
    aim: str = ""


def median_times(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return each contestant's median milliseconds, taking turns, after one turn to warm up."""
    for contestant in contestants.values():
        contestant()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            started = time.perf_counter()
            contestant()
            times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(taken) for name, taken in times.items()}
