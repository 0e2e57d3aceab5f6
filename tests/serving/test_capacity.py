import pytest

from hookviz.serving.capacity import plan_runs


@pytest.mark.parametrize(
    ("runs", "threads", "cores", "gigabytes", "expected"),
    [
        (0, 0, 0, 4, (4, 1, 1)),
        (0, 0, 1, 4, (4, 1, 1)),
        (0, 0, 2, 4, (4, 1, 1)),
        (0, 0, 2, 2, (2, 1, 1)),
        (0, 0, 4, 4, (2, 2, 1)),
        (0, 0, 8, 16, (2, 4, 1)),
        (0, 0, 32, 64, (8, 4, 7)),
        (0, 0, 32, 3, (3, 10, 2)),
        (0, 0, 4, 0.5, (1, 4, 1)),
        (5, 0, 4, 0.5, (5, 1, 2)),
        (0, 3, 4, 8, (2, 3, 1)),
    ],
)
def test_runs_times_threads_fill_the_cores(
    runs: int, threads: int, cores: int, gigabytes: float, expected: tuple[int, int, int]
) -> None:
    assert plan_runs(runs, threads, cores, int(gigabytes * (1 << 30))) == expected
