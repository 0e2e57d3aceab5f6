"""The process's turns to compute, taken by others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hookviz.serving import capacity


@contextmanager
def held_up() -> Iterator[None]:
    """While a person has every turn there is; streams have none."""
    go, inside = threading.Event(), threading.Semaphore(0)

    def stay(who: int) -> None:
        with capacity.queue().turn(("person", who)):
            inside.release()
            go.wait(60)

    threads = [threading.Thread(target=stay, args=(who,)) for who in range(capacity.queue().runs)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=30)
    try:
        yield
    finally:
        go.set()
        for thread in threads:
            thread.join(30)
