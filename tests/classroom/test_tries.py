from hookviz.classroom.tries import Tries


def test_a_session_and_all_together_have_so_many_tries_a_minute() -> None:
    time = [0.0]
    tries = Tries(one=3, together=8, seconds=60, now=lambda: time[0])
    for _ in range(3):
        assert not tries.are_too_many("a")
        tries.count("a")
    assert tries.are_too_many("a")
    assert not tries.are_too_many("b")
    for name in "bcdef":
        tries.count(name)  # each session new: no way around the bound of all
    assert tries.are_too_many("g")
    time[0] = 60.5
    assert not tries.are_too_many("a")
    assert not tries.are_too_many("g")


def test_names_are_not_kept_without_end() -> None:
    tries = Tries(together=5)
    for number in range(10_050):
        tries.count(str(number))
    assert len(tries._by_name) == 10_000
