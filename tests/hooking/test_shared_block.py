import threading
from collections.abc import Callable

import pytest

from hookviz.hooking.shared_block import SharedBlock


def counted() -> tuple[SharedBlock, list[str]]:
    """A block, and what it has done and undone."""
    done: list[str] = []

    def begin() -> Callable[[], object]:
        done.append("begun")
        return lambda: done.append("undone")

    return SharedBlock(begin), done


def test_the_first_makes_the_change_and_the_last_undoes_it() -> None:
    block, done = counted()
    with block, block:
        assert done == ["begun"]
    assert done == ["begun", "undone"]
    with pytest.raises(KeyboardInterrupt), block:
        raise KeyboardInterrupt
    assert done == ["begun", "undone"] * 2


def test_threads_share_a_block() -> None:
    block, done = counted()
    inside, goes_on = threading.Event(), threading.Event()

    def stay() -> None:
        with block:
            inside.set()
            assert goes_on.wait(20)

    thread = threading.Thread(target=stay)
    with block:
        thread.start()
        assert inside.wait(20)
    assert done == ["begun"]  # the other thread is in it
    goes_on.set()
    thread.join(20)
    assert done == ["begun", "undone"]
