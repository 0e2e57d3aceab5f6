"""Ask the app of `probed_app` what it holds, and wait for something to be so."""

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any


def get(address: str) -> dict[str, Any]:
    """What an address answers."""
    with urllib.request.urlopen(address, timeout=20) as answer:
        return dict(json.load(answer))


def until(true: Callable[[], bool]) -> None:
    """Wait half a minute at most for something to be so."""
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
