import pytest

from hookviz import Objective, SynthesisMethod
from hookviz.capturing.cache import Budget
from hookviz.synthesis.optimizing import Optimization, OptimizationState
from hookviz.synthesis.resuming import run_resumed
from hookviz.types import Model


def optimization(model: Model) -> Optimization:
    return Optimization(model, [Objective.of_channel("conv2", 0)], SynthesisMethod(size=32))


def test_what_a_session_keeps_is_small_and_ends_with_it(tiny: Model) -> None:
    budget = Budget(1_000_000)
    session = budget.cache(1_000_000)
    run_resumed(optimization(tiny), 3, session, "key", lambda _: None)
    assert 0 < budget.used < 100_000
    counted: list[int] = []
    run_resumed(optimization(tiny), 5, session, "key", lambda now: counted.append(now.steps))
    assert counted == [4, 5]
    session.clear()
    assert budget.used == 0


def test_nothing_is_kept_where_nothing_was_done(tiny: Model) -> None:
    budget = Budget(1_000_000)
    session = budget.cache(1_000_000)

    def stop(_now: Optimization) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_resumed(optimization(tiny), 3, session, "key", stop)
    kept: OptimizationState | None = session.get("key")
    assert kept is not None
    assert kept.steps == 1
    run_resumed(optimization(tiny), 2, None, "key", lambda _: None)
