from collections.abc import Iterator

import pytest

from tests.weights_server import WeightsServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeightsServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with WeightsServer() as server:
        yield server
