from hookviz.serving.rate_limiter import RateLimiter


def test_events_are_bounded_of_each_name_and_of_all_together() -> None:
    time = [0.0]
    limiter = RateLimiter(8, each=3, seconds=60, now=lambda: time[0])
    for _ in range(3):
        assert not limiter.is_exceeded("a")
        limiter.count("a")
    assert limiter.is_exceeded("a")
    assert not limiter.is_exceeded("b")
    for name in "bcdef":
        limiter.count(name)  # each name new: no way around the bound of all
    assert limiter.is_exceeded("g")
    time[0] = 60.5
    assert not limiter.is_exceeded("a")
    assert not limiter.is_exceeded("g")


def test_the_window_slides() -> None:
    time = [0.0]
    limiter = RateLimiter(2, seconds=60, now=lambda: time[0])
    limiter.count()
    time[0] = 40.0
    limiter.count()
    assert limiter.is_exceeded()
    time[0] = 61.0
    assert not limiter.is_exceeded()
    limiter.count()
    assert limiter.is_exceeded()
    time[0] = 99.0
    assert limiter.is_exceeded()
    time[0] = 101.0
    assert not limiter.is_exceeded()


def test_names_are_not_kept_without_end() -> None:
    limiter = RateLimiter(5, each=3)
    for number in range(10_050):
        limiter.count(str(number))
    assert len(limiter._by_name) == 10_000
