import pytest
from scipy.stats import binom

from hookviz.errors import ModelError
from hookviz.ui.lessons.parts.blind_test import (
    ANSWERS,
    MAPS,
    PART,
    ROUND,
    answers_of,
    blind_test,
    by_chance,
)
from tests.lessons.conftest import scene_of
from tests.ui.lessons.parts.scenes import cat, photograph, star, untrained, with_defaults

OPTIONS = with_defaults(PART)


def test_the_maps_are_the_same_each_time_and_others_for_another_image_and_number() -> None:
    first = blind_test(star(), OPTIONS).maps
    assert blind_test(scene_of(star().model, "star"), OPTIONS).maps == first
    assert blind_test(photograph(), OPTIONS).maps != first
    assert blind_test(star(), OPTIONS, 2).maps != first
    with pytest.raises(ModelError, match="random already"):
        PART.facts(untrained(), OPTIONS)


def test_ten_different_maps_of_both_kinds_that_show_something() -> None:
    counts = set()
    for number in range(1, 9):
        test = blind_test(cat(), OPTIONS, number)
        assert len(set(test.maps)) == len(test.maps) == MAPS
        counts.add(sum(shown.is_trained for shown in test.maps))
        for shown in test.maps:
            maps = test.pair.trained if shown.is_trained else test.pair.untrained
            values = maps.values[shown.channel]
            assert values.min() < values.max()
    assert len(counts) > 2  # not always as many of both
    assert counts <= {3, 4, 5, 6, 7}


def test_an_answer_is_right_where_it_says_what_the_map_was() -> None:
    test = blind_test(star(), OPTIONS)
    right = "".join("t" if shown.is_trained else "u" for shown in test.maps)
    wrong = right.translate(str.maketrans("tu", "ut"))
    for answers, count in ((right, MAPS), (right[:3], 3), (wrong, 0), (right[:4] + wrong[4:], 4)):
        assert test.right(answers) == count
    facts = PART.facts(star(), {**OPTIONS, ANSWERS: right[:9] + wrong[9:]})
    assert facts["standing"] == (
        "9 of 10 right. A tossed coin has 9 or more in 1.1 % of all tests."
    )
    assert PART.facts(star(), {**OPTIONS, ANSWERS: right[:2]})["standing"] == "2 of 10 answered."


def test_what_a_coin_would_score_is_the_binomial_tail() -> None:
    for right in range(MAPS + 1):
        assert by_chance(right, MAPS) == pytest.approx(binom.sf(right - 1, MAPS, 0.5))


def test_a_link_s_answers_are_read_as_far_as_they_are_some() -> None:
    assert answers_of("tutx tt", 10) == "tut"
    assert answers_of("t" * 30, 10) == "t" * 10
    assert PART.facts(star(), {**OPTIONS, ANSWERS: "t", ROUND: "4"})["answered"] == 1
