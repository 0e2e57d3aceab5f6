"""Networks that nobody has thought of: each held against plain hooks that copy at once."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, note
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.network_trial import trial
from tests.random_kinds import RARE
from tests.random_networks import random_description


@pytest.mark.by_day
@hypothesis_settings(
    max_examples=10,  # `make networks` tries 2,000
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.randoms(use_true_random=False))
def test_a_random_network_is_shown_as_it_computes(random: Random) -> None:
    description = random_description(random)
    note(str(description))  # build it again from this
    outcome = trial(description)
    assert not outcome.wrong
    assert not outcome.raw
    if RARE.keys().isdisjoint(description.kinds):
        assert not outcome.refused or not outcome.runs
