"""A class with many threads at once, and those who are not what they say."""

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from hookviz.classroom.question import read_question
from hookviz.classroom.school_class import ALONE, ELSEWHERE, ENDED, LASTS, SchoolClass, Seat
from hookviz.classroom.shared_state import SharedState
from hookviz.errors import ClassroomError


def nothing() -> None:
    pass


def seated(held: SchoolClass, owner: str = "pupil") -> Seat:
    seat = held.sit(held.admit(owner), nothing)
    assert seat is not None
    return seat


def teacher_of(held: SchoolClass) -> Seat:
    seat = held.sit(held.secret_for_the_teacher(), nothing)
    assert seat is not None
    assert seat.follower is None
    return seat


def test_who_follows_sees_what_the_teacher_shows_last() -> None:
    held = SchoolClass("ABCDEF")
    pupil, teacher = seated(held), teacher_of(held)
    assert held.view(pupil) == {"over": "", "state": None, "question": None}
    held.publish(teacher, SharedState("layer=one"))
    held.publish(teacher, SharedState("layer=two", sample=False))
    assert held.view(pupil)["state"] == {"query": "layer=two", "sample": False}
    assert held.view(seated(held, "late"))["state"]["query"] == "layer=two"
    assert "state" not in held.view(teacher)
    assert held.view(teacher)["followers"] == 2


def test_a_pupil_is_no_teacher() -> None:
    held = SchoolClass("ABCDEF")
    teacher, pupil = teacher_of(held), seated(held)
    held.publish(pupil, SharedState("layer=mine"))
    assert held.view(pupil)["state"] is None
    asked = read_question("?", "ab")
    held.ask(asked)
    held.close(pupil, asked.number)
    assert held.question == asked
    held.vote(teacher, asked.number, 0)
    assert held.view(teacher)["question"]["tally"] == [0, 0]
    before = held.sit(held.secret_for_the_teacher(), nothing)  # another window of the teacher
    assert before is not None
    held.publish(teacher, SharedState("layer=old"))
    assert held.view(pupil)["state"] is None
    assert held.view(teacher)["over"] == ELSEWHERE


@pytest.mark.parametrize("token", ["", ".", "x.y", "x", "\ud800", "é" * 100])
def test_no_other_token_has_a_seat(token: str) -> None:
    held = SchoolClass("ABCDEF")
    own = held.admit("pupil")
    name, _, secret = own.partition(".")
    for wrong in (token, name, f"{name}.", f"{name}.{secret}x", f"{name}.{token}", f".{secret}"):
        assert held.sit(wrong, nothing) is None
    assert held.sit(own, nothing) is not None
    assert not held.is_taught_by(own)
    assert not held.is_taught_by(token)


def test_one_vote_each_that_can_be_changed() -> None:
    held = SchoolClass("ABCDEF")
    teacher, one, other = teacher_of(held), seated(held, "one"), seated(held, "other")
    asked = read_question("Which?", ["this", "that", "none"])
    held.ask(asked)
    for seat, answer in ((one, 0), (other, 2), (one, 2), (one, 1), (one, 1)):
        held.vote(seat, asked.number, answer)
    assert held.view(teacher)["question"]["tally"] == [0, 1, 1]
    assert held.view(one)["question"]["mine"] == 1
    assert "tally" not in held.view(one)["question"]
    for answer, number in ((-1, asked.number), (3, asked.number), (0, asked.number - 1)):
        held.vote(one, number, answer)
    assert held.view(teacher)["question"]["tally"] == [0, 1, 1]
    held.close(teacher, asked.number - 1)  # of a question that is not open any more
    assert held.question is asked
    held.close(teacher, asked.number)
    assert held.view(one)["question"] is held.view(teacher)["question"] is None
    held.ask(read_question("Again?", "ab"))
    assert held.view(teacher)["question"]["tally"] == [0, 0]


def test_a_page_that_is_loaded_again_has_its_vote_and_no_second_one() -> None:
    held = SchoolClass("ABCDEF")
    teacher = teacher_of(held)
    before = held.admit("first load")
    first = held.sit(before, nothing)
    assert first is not None
    asked = read_question("?", "ab")
    held.ask(asked)
    held.vote(first, asked.number, 1)
    held.rise(first)
    held.part("first load")
    assert held.view(teacher)["question"]["tally"] == [0, 1]  # its screen may be locked
    again = held.sit(held.admit("second load"), nothing, before)
    assert again is not None
    assert held.view(again)["question"]["mine"] == 1
    held.vote(again, asked.number, 0)
    assert held.view(teacher)["question"]["tally"] == [1, 0]
    assert held.sit(before, nothing) is None


def test_a_session_has_one_pass_and_one_seat() -> None:
    held = SchoolClass("ABCDEF", most=2)
    token = held.admit("one")
    assert held.admit("one") == token
    first, second = (held.sit(token, nothing) for _ in range(2))
    assert first is not None
    assert second is not None
    assert held.view(first)["over"] == ELSEWHERE
    held.rise(first)  # when its connection has ended, that of the second goes on
    assert held.view(teacher_of(held))["followers"] == 1
    held.admit("two")
    with pytest.raises(ClassroomError, match="2 follow this class, which is the most"):
        held.admit("three")
    held.leave("two")
    held.admit("three")
    held.part("three")  # without a connection, and its page was not loaded again
    held.admit("four")


def due(held: SchoolClass) -> bool:
    return held.is_due


def test_it_ends_in_time_or_when_its_teacher_has_gone() -> None:
    time = [0.0]
    held = SchoolClass("ABCDEF", now=lambda: time[0])
    assert not due(held)
    time[0] = ALONE
    assert due(held)
    teacher = teacher_of(held)
    time[0] = LASTS - 1
    assert not due(held)
    held.rise(teacher)
    time[0] = LASTS
    assert due(held)


def test_nothing_is_kept_when_it_ends_and_everybody_is_told() -> None:
    held = SchoolClass("ABCDEF")
    woken: list[str] = []
    seats = [held.sit(held.admit(name), lambda: woken.append("")) for name in "abc"]
    teacher = teacher_of(held)
    held.publish(teacher, SharedState("layer=x"))
    held.ask(read_question("Secret words?", "ab"))
    woken.clear()
    held.end()
    assert len(woken) == 3
    for seat in [*seats, teacher]:
        assert seat is not None
        assert held.view(seat)["over"] == ENDED
    kept = vars(held)
    assert not kept["_followers"]
    assert kept["_state"] is kept["_question"] is kept["_teacher"] is None
    assert held.sit(held.secret_for_the_teacher(), nothing) is None
    held.ask(read_question("?", "ab"))
    assert kept["_question"] is None


def test_whoever_joins_votes_and_leaves_at_once_the_numbers_are_right() -> None:
    held = SchoolClass("ABCDEF")
    teacher = teacher_of(held)
    asked = read_question("?", "abcdef")
    held.ask(asked)
    ready = threading.Barrier(41)
    stop = threading.Event()

    def pupil(number: int) -> int | None:
        random = Random(number)
        ready.wait()
        last = None
        for _ in range(40):
            seat = seated(held, str(number))
            last = random.randrange(6)
            held.vote(seat, asked.number, last)
            if random.random() < 0.3:
                held.rise(seat)
        if number % 4:
            return last
        held.leave(str(number))
        return None

    def look() -> None:
        ready.wait()
        while not stop.is_set():
            held.publish(teacher, SharedState(f"channel={len(held.view(teacher))}"))
            assert sum(held.view(teacher)["question"]["tally"]) <= 40

    with ThreadPoolExecutor(41) as pool:
        watching = pool.submit(look)
        votes = list(pool.map(pupil, range(40)))
        stop.set()
        watching.result()
    assert held.view(teacher)["question"]["tally"] == [votes.count(answer) for answer in range(6)]
    assert votes.count(None) == 10
