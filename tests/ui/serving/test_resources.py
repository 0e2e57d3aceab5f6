import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hookviz.models import catalog
from hookviz.serving import capacity
from hookviz.serving.time_limit import TimeLimit, TooLongError
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice


def test_a_model_that_loads_too_long_is_not_kept_and_can_be_had_later() -> None:
    choice = ModelChoice(catalog.find_model("squeezenet1_0"), "random")
    turns: list[str] = []

    @contextmanager
    def load_turn(seconds: float) -> Iterator[TimeLimit]:
        turns.append("begun")
        yield TimeLimit("Loading it", 9, time.monotonic() + seconds)
        turns.append("done")

    used = capacity.model_pool().used
    with (
        pytest.raises(TooLongError, match="Loading it took longer"),
        resources.use_model(choice, lambda: load_turn(-1)),
    ):
        pass
    assert capacity.model_pool().used == used
    with resources.use_model(choice, lambda: load_turn(60)) as model:
        pass
    with resources.use_model(choice, lambda: load_turn(60)) as again:
        assert again is model  # and no second turn
    assert turns == ["begun", "begun", "done"]
