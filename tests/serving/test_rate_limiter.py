from hookviz.serving.rate_limiter import GuessLimiter, RateLimiter


def test_events_are_bounded_of_each_name_alone() -> None:
    time = [0.0]
    limiter = RateLimiter(3, seconds=60, now=lambda: time[0])
    for _ in range(3):
        assert not limiter.is_exceeded("a")
        limiter.count("a")
    assert limiter.is_exceeded("a")
    assert not limiter.is_exceeded("b")
    time[0] = 60.5
    assert not limiter.is_exceeded("a")


def test_guesses_hold_up_their_session_and_no_right_code_of_another() -> None:
    limiter = GuessLimiter(of_session=3, of_address=4, at_least=2)
    for session in ("a", "a", "a", "b"):
        assert not limiter.is_exceeded(session, "here")
        limiter.count(session, "here")
    assert limiter.is_exceeded("a", "elsewhere")
    for _ in range(2):  # the address has had its guesses
        assert not limiter.is_exceeded("new", "here")
        limiter.count("new", "here")
    assert limiter.is_exceeded("new", "here")
    assert not limiter.is_exceeded("new", "elsewhere")


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
    limiter = RateLimiter(3)
    for number in range(10_050):
        limiter.count(str(number))
    assert len(limiter._by_name) == 10_000
