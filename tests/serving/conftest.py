from collections.abc import Iterator

import pytest

from hookviz.settings import settings


@pytest.fixture
def runs_of_a_second(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each run may take one second."""
    monkeypatch.setenv("HOOKVIZ_RUN_SECONDS", "1")
    settings.cache_clear()
    yield
    settings.cache_clear()
