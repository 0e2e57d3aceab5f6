"""Networks that nobody has thought of: each held against plain hooks that copy at once."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, note
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.network_trial import trial
from tests.random_kinds import KINDS, RARE
from tests.random_networks import FEATURES, Description, Step, build, random_description


@pytest.mark.by_day
@hypothesis_settings(
    max_examples=20,  # `make networks` tries 2,000
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


def test_every_feature_comes_up() -> None:
    descriptions = [random_description(Random(seed)) for seed in range(600)]
    assert set(FEATURES) <= frozenset().union(*(each.features for each in descriptions))


def test_every_feature_is_of_one_kind() -> None:
    features = [feature for some in KINDS.values() for feature in some]
    assert len(features) == len(set(features))
    assert set(FEATURES) <= set(features)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_can_be_drawn_alone(kind: str) -> None:
    assert all(kind in random_description(Random(seed), kind).kinds for seed in range(20))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_equal_descriptions_build_equal_networks(dtype: str) -> None:
    description = Description((Step("conv", 4), Step("Attention"), Step("norm", 2)), dtype)
    one, same = (str(build(description).state_dict()) for _ in range(2))
    assert one == same != str(build(Description(description.steps, dtype, seed=1)).state_dict())
