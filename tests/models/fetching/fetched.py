"""Files fetched from a server on loopback, for tests of what lines and answers do to them."""

from dataclasses import replace
from pathlib import Path

import pytest

from hookviz.errors import WeightsError
from hookviz.models.fetching.downloads import fetch
from hookviz.models.fetching.transfers import RetryLimits
from tests.weights_server import Answer, WeightsServer, hashed_name, random_bytes

FAST = RetryLimits(backoff=0.01, longest_pause=0.05, report=0.01)
STALLING = replace(FAST, stall=0.5)
BODY = random_bytes(200_000)
NAME = hashed_name(BODY)
CUT = Answer(cut_after=70_001)


def brought(
    server: WeightsServer, folder: Path, *answers: Answer, limits: RetryLimits = FAST
) -> None:
    """Fetches BODY over these answers, and compares every byte."""
    path = fetch(server.add(NAME, BODY, *answers), folder / NAME, limits=limits)
    assert path.read_bytes() == BODY
    assert [entry.name for entry in folder.iterdir()] == [NAME]


def refused(
    server: WeightsServer,
    folder: Path,
    *answers: Answer,
    name: str = NAME,
    limits: RetryLimits = FAST,
) -> str:
    """The error over these answers, which leaves nothing behind."""
    url = server.add(name, BODY, *answers)
    with pytest.raises(WeightsError) as caught:
        fetch(url, folder / name, limits=limits)
    assert list(folder.iterdir()) == []
    text = str(caught.value)
    assert name in text
    assert "127.0.0.1" in text
    assert "Traceback" not in text
    assert "Error(" not in text
    return text


def ranges(server: WeightsServer) -> list[str | None]:
    return [request.range for request in server.requests_for(NAME)]
