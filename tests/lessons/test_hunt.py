import pytest

from hookviz.lessons.hunt import Hunt, read_hunt, written_hunt

LIKENESS = (0.2, 0.9, 0.5, 0.7, 0.1, 0.3, 0.4, 0.6)


def after(*tries: int) -> Hunt:
    hunt = Hunt(LIKENESS)
    for each in tries:
        hunt = hunt.trying(each)
    return hunt


def test_nothing_is_told_before_it_is_found() -> None:
    hunt = after(3, 3, 2, 3)  # a tile counts once
    assert hunt.tries == (3, 2)
    assert not hunt.is_over
    assert (hunt.closest_so_far, hunt.closer_than(3), hunt.stars) == (3, 1, 0)
    assert Hunt(LIKENESS).closest_so_far is None


@pytest.mark.parametrize(
    ("tries", "stars"), [((1,), 3), ((0, 2, 1), 3), ((0, 2, 3, 1), 2), ((0, 2, 3, 4, 5, 6, 1), 1)]
)
def test_fewer_tries_are_more_stars(tries: tuple[int, ...], stars: int) -> None:
    hunt = after(*tries)
    assert hunt.is_found
    assert hunt.stars == stars
    assert hunt.trying(7) == hunt  # it is over
    assert Hunt((0.5, 0.5, 0.1)).trying(1).is_found  # one that is as alike


def test_an_answer_that_was_asked_for_has_no_star() -> None:
    given_up = after(0).giving_up()
    assert given_up.is_over
    assert (given_up.best, given_up.stars, given_up.is_found) == (1, 0, False)
    assert given_up.trying(1) == given_up
    assert after(1).giving_up().stars == 3  # there is nothing left to ask for


@pytest.mark.parametrize("hunt", [after(), after(3, 2), after(3, 1), after(3).giving_up()])
def test_it_is_read_as_it_was_written(hunt: Hunt) -> None:
    assert read_hunt(written_hunt(hunt), LIKENESS) == hunt


@pytest.mark.parametrize("text", ["8", "1.99", "a", "1..2", "-1", "!!", "1" * 4000, "1.1.1.x"])
def test_any_other_text_is_a_fresh_hunt(text: str) -> None:
    assert read_hunt(text, LIKENESS) == Hunt(LIKENESS)
