import gc
import random
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from hookviz.capturing.cache import Budget


def test_the_oldest_goes_first() -> None:
    cache = Budget(100).cache(30)
    for key in "abc":
        cache.put(key, key.upper(), 10)
    assert cache.get("a") == "A"  # now b is the one that nobody has used for longest
    cache.put("d", "D", 10)
    assert cache.get("b") is None
    assert [cache.get(key) for key in "acd"] == ["A", "C", "D"]
    assert cache.used == 30
    budget = Budget(50)
    cache = budget.cache(60)
    cache.put("a", "old", 10)
    assert cache.put("large", 2, 51) is False  # which pushes nothing out
    assert (cache.get("large"), cache.get("a"), cache.limit) == (None, "old", 50)
    cache.put("a", "new", 30)
    assert (cache.get("a"), cache.used, budget.used, len(cache)) == ("new", 30, 30, 1)
    cache.put("b", 2, 20)
    for _ in range(2):
        cache.drop("a")
        assert (cache.get("a"), cache.get("b"), cache.used, budget.used) == (None, 2, 20, 20)


def test_the_budget_takes_from_whoever_has_rested_longest() -> None:
    budget = Budget(30)
    first, second = budget.cache(30), budget.cache(30)
    first.put("x", 1, 10)
    second.put("x", 2, 10)
    first.put("y", 3, 10)
    first.get("x")
    second.put("z", 4, 10)  # second's x is now the oldest over both
    assert second.get("x") is None
    assert (first.get("x"), first.get("y"), second.get("z")) == (1, 3, 4)
    assert (first.used, second.used, budget.used) == (20, 10, 30)
    first.clear()
    assert (first.used, budget.used) == (0, 10)
    del second
    gc.collect()
    assert budget.used == 0  # what is forgotten gives its bytes back


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 40), st.booleans()),
        max_size=80,
    )
)
def test_no_bound_is_ever_passed(steps: list[tuple[int, int, int, bool]]) -> None:
    budget = Budget(60)
    caches = [budget.cache(limit) for limit in (10, 30, 100)]
    for which, key, size, put in steps:
        if put:
            caches[which].put(key, (which, key), size)
        else:
            assert caches[which].get(key) in (None, (which, key))
        assert all(cache.used <= cache.limit for cache in caches)
        assert budget.used == sum(cache.used for cache in caches) <= 60


def test_threads_leave_the_sums_right() -> None:
    budget = Budget(500)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        cache = budget.cache(200)
        for _ in range(400):
            key = rng.randrange(12)
            if rng.random() < 0.5:
                cache.put(key, seed, rng.randrange(60))
            else:
                assert cache.get(key) in (None, seed)
        cache.clear()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert budget.used == 0


def test_the_oldest_of_all_sessions_are_given_back() -> None:
    budget = Budget(100)
    first, second = budget.cache(100), budget.cache(100)
    for key in "ab":
        first.put(key, key, 10)
        second.put(key, key, 10)
    first.get("a")  # now the order is: second's a, first's b, second's b, first's a
    assert budget.give_back(15) == 20
    assert (first.get("b"), second.get("a")) == (None, None)
    assert (first.get("a"), second.get("b")) == ("a", "b")
    assert (first.used, second.used, budget.used) == (10, 10, 20)
    assert budget.give_back(1000) == 20
    assert budget.give_back(1) == budget.used == len(first) == 0


def test_what_begins_alike_is_handed_over_to_another_cache() -> None:
    budget = Budget(100)
    one, other = budget.cache(100), budget.cache(15)
    for key in (("net", "a"), ("net", "b"), ("net",), ("nets", "a"), "net"):
        one.put(key, key, 5)
    one.hand_over(other, ("net",))
    assert [other.get(("net", name)) for name in "ab"] == [("net", "a"), ("net", "b")]
    assert other.get(("nets", "a")) is other.get("net") is None
    assert len(other) == 3
    assert len(one) == 5
    assert other.used == 15
    one.hand_over(other, ("nets",))  # more than there is room for: the oldest goes
    assert other.get(("nets", "a")) == ("nets", "a")
    assert other.used == 15
