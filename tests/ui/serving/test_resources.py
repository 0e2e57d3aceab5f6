from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hookviz.models import catalog
from hookviz.serving import capacity
from hookviz.serving.time_limit import TimeLimit, TooLongError
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice


def test_a_model_that_loads_too_long_is_not_kept_and_can_be_had_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice = ModelChoice(catalog.find_model("squeezenet1_0"), "random")
    loaded: list[str] = []

    @contextmanager
    def loading() -> Iterator[None]:
        loaded.append("begun")
        yield
        loaded.append("done")

    used = capacity.model_pool().used
    with monkeypatch.context() as late:
        late.setattr(TimeLimit, "from_now", lambda label: TimeLimit(label, 9, 0.0))
        with (
            pytest.raises(TooLongError, match="took longer than the 9 seconds"),
            resources.use_model(choice, loading),
        ):
            pass
    assert capacity.model_pool().used == used
    with (
        resources.use_model(choice, loading) as model,
        resources.use_model(choice, loading) as same,
    ):
        assert same is model  # and it is not loaded again
    assert loaded == ["begun", "begun", "done"]
