import pytest

from hookviz.engines.engine import TotalProgress, in_this_process
from tests.engines.jobs import Doubling


def test_this_process_takes_a_shard_when_the_one_before_is_handed_over() -> None:
    seen: list[str] = []

    def asked(number: int) -> tuple[int, ...]:
        seen.append(f"asked for {number}")
        return (number,)

    results = in_this_process(Doubling(), map(asked, range(3)), lambda _done, _left_out: None)
    seen.extend(f"took in {result[0] // 2}" for result in results)
    assert seen == [f"{what} {number}" for number in range(3) for what in ("asked for", "took in")]


def test_what_is_told_of_shards_is_summed_up() -> None:
    reported: list[tuple[float, int]] = []
    list(in_this_process(Doubling(), [(1, 2), (3,)], lambda *now: reported.append(now)))
    assert reported == [(1, 0), (2, 0), (3, 0)]


def test_a_shard_that_is_begun_anew_tells_nothing_twice() -> None:
    reported: list[tuple[float, int]] = []
    total = TotalProgress(lambda *now: reported.append(now))
    for number, done, left_out in [(0, 4, 1), (1, 2, 0), (0, 1, 0), (0, 4, 1), (0, 6, 2)]:
        total.shard(number, done, left_out)
    assert reported == [(4, 1), (6, 1), (8, 2)]


def test_whoever_is_told_can_end_the_job() -> None:
    def end(_done: float, _left_out: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(in_this_process(Doubling(), [(1, 2)], end))
