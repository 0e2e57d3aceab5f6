"""What a part computed once is there again for the same model and input, and for no other."""

from dataclasses import replace

from hookviz.capturing.cache import Budget
from hookviz.lessons.kept import kept
from tests.lessons.parts.scenes import cat, star


def test_it_is_made_once_while_there_is_room() -> None:
    cache = Budget(1000).cache(1000)
    scene, other = (replace(each, cache=cache) for each in (star(), cat()))
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [kept(scene, ("a",), make, 10) for _ in range(3)] == [1, 1, 1]
    assert kept(scene, ("b",), make, 10) == 2
    assert kept(other, ("a",), make, 10) == 3
    assert kept(scene, ("large",), make, 2000) == 4
    assert kept(scene, ("large",), make, 2000) == 5


def test_without_a_cache_it_is_made_each_time() -> None:
    made: list[int] = []
    for _ in range(2):
        kept(star(), ("a",), lambda: made.append(1), 10)
    assert len(made) == 2
