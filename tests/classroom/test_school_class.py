"""A class with many threads at once, and those who are not what they say."""

import json
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from hookviz.classroom.link_parameters import SharedState
from hookviz.classroom.question import Question, Riddle, ask_riddle, read_question
from hookviz.classroom.school_class import (
    ELSEWHERE,
    ENDED,
    MAX_DURATION_S,
    MAX_FRAME_BYTES,
    PRIVATE,
    SHARED,
    TEACHER_GONE_S,
    LiveShare,
    SchoolClass,
    Seat,
    check_frame,
)
from hookviz.errors import ClassroomError
from tests.pictures import encoded, picture


def jpeg(width: int = 160, height: int = 120) -> bytes:
    return encoded(picture(1, width, height), "JPEG", quality=60)


def framed(*pictures: bytes, **facts: object) -> bytes:
    text = json.dumps({"blobs": list(map(len, pictures)), **facts}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(pictures)


def kept(share: LiveShare) -> tuple[int, bytes] | None:
    return share.frame


def test_the_newest_frame_of_a_shared_camera_alone_is_kept() -> None:
    clock = [10.0]
    share = LiveShare(lambda: clock[0])
    assert not share.take(framed(jpeg()))  # nobody said that it is shared
    assert share.take(PRIVATE)
    assert not share.take(framed(jpeg()))
    assert kept(share) is None
    assert share.take(SHARED)
    assert not share.take(SHARED)
    first, second = framed(jpeg(), layer="one"), framed(jpeg(), jpeg(), layer="two")
    assert share.take(first)
    assert not share.take(second)  # at once after it
    assert kept(share) == (1, first)
    clock[0] += 1
    assert share.take(second)
    assert kept(share) == (2, second)
    assert share.take(PRIVATE)
    assert kept(share) is None
    assert share.take("what nobody knows")
    assert share.kind is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        framed(),
        framed(jpeg(), jpeg(), jpeg()),
        framed(jpeg()) + b"more",
        framed(jpeg())[:-1],
        framed(encoded(picture(1), "PNG")),
        framed(jpeg(), b"<svg onload=alert(1)>"),
        framed(jpeg(2048, 1024)),
        framed(jpeg(), words="x" * 3000),
        framed(jpeg(), blobs=[True]),
        framed(jpeg(), blobs="1"),
        struct.pack("<I", 1500) + b"[" * 1500,
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ClassroomError, match="no frame that a class can be shown"):
        check_frame(data)


def test_a_frame_has_a_bound_that_is_said() -> None:
    with pytest.raises(ClassroomError, match="up to 60,000 bytes; this one has 60,001"):
        check_frame(b"\0" * (MAX_FRAME_BYTES + 1))


def nothing() -> None:
    pass


def seated(school_class: SchoolClass, owner: str = "pupil") -> Seat:
    seat = school_class.sit(school_class.admit(owner), nothing)
    assert seat is not None
    return seat


def teacher_of(school_class: SchoolClass) -> Seat:
    seat = school_class.sit(school_class.secret_for_the_teacher(), nothing)
    assert seat is not None
    assert seat.follower is None
    return seat


def asked(school_class: SchoolClass) -> Question | None:
    return school_class.question


def test_who_follows_sees_what_the_teacher_shows_last() -> None:
    school_class = SchoolClass("ABCDEF")
    pupil, teacher = seated(school_class), teacher_of(school_class)
    seen = school_class.view(pupil)
    assert (seen["over"], seen["state"], seen["question"]) == ("", None, None)
    school_class.publish(teacher, SharedState("layer=one"))
    school_class.publish(teacher, SharedState("layer=two", sample=False))
    assert school_class.view(pupil)["state"] == {"query": "layer=two", "sample": False}
    assert school_class.view(seated(school_class, "late"))["state"]["query"] == "layer=two"
    assert "state" not in school_class.view(teacher)
    assert school_class.view(teacher)["followers"] == 2


def test_a_pupil_is_no_teacher() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher, pupil = teacher_of(school_class), seated(school_class)
    school_class.publish(pupil, SharedState("layer=mine"))
    assert school_class.view(pupil)["state"] is None
    question = read_question("?", "ab")
    school_class.ask(question)
    school_class.close(pupil, question.number)
    assert school_class.question == question
    school_class.vote(teacher, question.number, 0)
    assert school_class.view(teacher)["question"]["tally"] == [0, 0]
    before = school_class.sit(
        school_class.secret_for_the_teacher(), nothing
    )  # another window of the teacher
    assert before is not None
    school_class.publish(teacher, SharedState("layer=old"))
    assert school_class.view(pupil)["state"] is None
    assert school_class.view(teacher)["over"] == ELSEWHERE


@pytest.mark.parametrize("token", ["", ".", "x.y", "x", "\ud800", "é" * 100])
def test_no_other_token_has_a_seat(token: str) -> None:
    school_class = SchoolClass("ABCDEF")
    own = school_class.admit("pupil")
    name, _, secret = own.partition(".")
    for wrong in (token, name, f"{name}.", f"{name}.{secret}x", f"{name}.{token}", f".{secret}"):
        assert school_class.sit(wrong, nothing) is None
    assert school_class.sit(own, nothing) is not None
    assert not school_class.is_taught_by(own)
    assert not school_class.is_taught_by(token)


def test_one_vote_each_that_can_be_changed_of_one_question() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher, one, other = (
        teacher_of(school_class),
        seated(school_class, "one"),
        seated(school_class, "other"),
    )
    question = read_question("Which?", ["this", "that", "none"])
    school_class.ask(question)
    for seat, answer in ((one, 0), (other, 2), (one, 2), (one, 1), (one, 1)):
        school_class.vote(seat, question.number, answer)
    assert school_class.view(teacher)["question"]["tally"] == [0, 1, 1]
    assert school_class.view(one)["question"]["mine"] == 1
    assert "tally" not in school_class.view(one)["question"]
    for answer, number in ((-1, question.number), (3, question.number), (0, question.number - 1)):
        school_class.vote(one, number, answer)
    assert school_class.view(teacher)["question"]["tally"] == [0, 1, 1]
    school_class.close(teacher, question.number - 1)  # of a question that is not open any more
    assert asked(school_class) is question
    school_class.close(teacher, question.number)
    assert asked(school_class) is None  # and what the class answered stands on all screens
    for seat in (one, other, teacher):
        assert school_class.view(seat)["question"]["tally"] == [0, 1, 1]
    school_class.vote(one, question.number, 0)
    assert school_class.view(one)["question"]["mine"] == 1
    school_class.put_away(one, question.number)
    assert school_class.view(other)["question"] is not None
    school_class.put_away(teacher, question.number)
    assert school_class.view(one)["question"] is school_class.view(teacher)["question"] is None
    school_class.ask(read_question("Again?", "ab"))
    assert school_class.view(teacher)["question"]["tally"] == [0, 0]
    teacher, pupil = teacher_of(school_class), seated(school_class)
    first, second = read_question("?", "ab"), read_question("!", "ab")
    school_class.ask(first)
    school_class.vote(pupil, first.number, 1)
    school_class.ask(second)
    school_class.vote(pupil, first.number, 0)  # it was on its way
    assert school_class.view(pupil)["question"]["mine"] is None
    assert school_class.view(teacher)["question"]["tally"] == [0, 0]


def test_a_page_that_is_loaded_again_has_its_vote_and_no_second_one() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher = teacher_of(school_class)
    before = school_class.admit("first load")
    first = school_class.sit(before, nothing)
    assert first is not None
    question = read_question("?", "ab")
    school_class.ask(question)
    school_class.vote(first, question.number, 1)
    school_class.rise(first)
    school_class.session_ended("first load")
    assert school_class.view(teacher)["question"]["tally"] == [0, 1]  # its screen may be locked
    again = school_class.sit(school_class.admit("second load"), nothing, before)
    assert again is not None
    assert school_class.view(again)["question"]["mine"] == 1
    school_class.vote(again, question.number, 0)
    assert school_class.view(teacher)["question"]["tally"] == [1, 0]
    assert school_class.sit(before, nothing) is None


def test_the_votes_of_those_who_make_room_go_with_them() -> None:
    school_class = SchoolClass("ABCDEF", most=2)
    teacher, question = teacher_of(school_class), read_question("?", "ab")
    school_class.ask(question)
    for number in range(5):
        seat = seated(school_class, f"pupil {number}")
        school_class.vote(seat, question.number, 0)
        school_class.rise(seat)
        school_class.session_ended(f"pupil {number}")
    assert sum(school_class.view(teacher)["question"]["tally"]) <= 2


def test_a_session_has_one_pass_and_one_seat_and_a_copied_tab_the_newest() -> None:
    school_class = SchoolClass("ABCDEF", most=2)
    token = school_class.admit("one")
    assert school_class.admit("one") == token
    first, second = (school_class.sit(token, nothing) for _ in range(2))
    assert first is not None
    assert second is not None
    assert school_class.view(first)["over"] == ELSEWHERE
    school_class.rise(first)  # when its connection has ended, that of the second goes on
    assert school_class.view(teacher_of(school_class))["followers"] == 1
    school_class.admit("two")
    with pytest.raises(ClassroomError, match="2 follow this class, which is the most"):
        school_class.admit("three")
    school_class.leave("two")
    school_class.admit("three")
    school_class.session_ended("three")  # without a connection, and its page was not loaded again
    school_class.admit("four")
    school_class = SchoolClass("ABCDEF")
    teacher, first_pass = teacher_of(school_class), school_class.admit("first")
    woken: list[str] = []
    first = school_class.sit(first_pass, lambda: woken.append("first"))
    copy = school_class.sit(school_class.admit("copy"), nothing, first_pass)
    assert first is not None
    assert copy is not None
    assert woken
    assert school_class.view(first)["over"] == ELSEWHERE
    assert school_class.view(copy)["over"] == ""
    assert school_class.view(teacher)["followers"] == 1


def due(school_class: SchoolClass) -> bool:
    return school_class.is_due


def test_it_ends_in_time_or_when_its_teacher_has_gone() -> None:
    time = [0.0]
    school_class = SchoolClass("ABCDEF", now=lambda: time[0])
    assert not due(school_class)
    time[0] = TEACHER_GONE_S
    assert due(school_class)
    teacher = teacher_of(school_class)
    time[0] = MAX_DURATION_S - 1
    assert not due(school_class)
    school_class.rise(teacher)
    time[0] = MAX_DURATION_S
    assert due(school_class)


def test_nothing_is_kept_when_it_ends_and_everybody_is_told() -> None:
    school_class = SchoolClass("ABCDEF")
    woken: list[str] = []
    seats = [school_class.sit(school_class.admit(name), lambda: woken.append("")) for name in "abc"]
    teacher = teacher_of(school_class)
    school_class.publish(teacher, SharedState("layer=x"))
    school_class.ask(read_question("Secret words?", "ab"))
    woken.clear()
    school_class.end()
    assert len(woken) == 3
    for seat in [*seats, teacher]:
        assert seat is not None
        assert school_class.view(seat)["over"] == ENDED
    kept = vars(school_class)
    assert not kept["_followers"]
    assert kept["_state"] is kept["_poll"] is kept["_teacher"] is None
    assert school_class.sit(school_class.secret_for_the_teacher(), nothing) is None
    school_class.ask(read_question("?", "ab"))
    assert kept["_poll"] is None


def test_whoever_joins_votes_and_leaves_at_once_the_numbers_are_right() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher = teacher_of(school_class)
    question = read_question("?", "abcdef")
    school_class.ask(question)
    ready = threading.Barrier(41)
    stop = threading.Event()

    def pupil(number: int) -> int | None:
        random = Random(number)
        ready.wait()
        last = None
        for _ in range(40):
            seat = seated(school_class, str(number))
            last = random.randrange(6)
            school_class.vote(seat, question.number, last)
            if random.random() < 0.3:
                school_class.rise(seat)
        if number % 4:
            return last
        school_class.leave(str(number))
        return None

    def look() -> None:
        ready.wait()
        while not stop.is_set():
            school_class.publish(teacher, SharedState(f"channel={len(school_class.view(teacher))}"))
            assert sum(school_class.view(teacher)["question"]["tally"]) <= 40

    with ThreadPoolExecutor(41) as pool:
        watching = pool.submit(look)
        votes = list(pool.map(pupil, range(40)))
        stop.set()
        watching.result()
    assert school_class.view(teacher)["question"]["tally"] == [
        votes.count(answer) for answer in range(6)
    ]
    assert votes.count(None) == 10


def test_those_who_follow_are_counted_and_answered() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher, *pupils = (
        teacher_of(school_class),
        *(seated(school_class, name) for name in "abcd"),
    )

    def counted() -> tuple[int, int]:
        view = school_class.view(teacher)
        return view["followers"], view["alone"]

    assert counted() == (4, 0)
    school_class.attend(pupils[0], "alone")
    school_class.attend(pupils[1], "away")  # its page is hidden
    assert counted() == (2, 1)
    school_class.rise(pupils[2])  # its line was cut
    assert counted() == (1, 1)
    school_class.attend(pupils[1], "follows")
    school_class.attend(pupils[0], "teaches")  # which is nothing that a page says
    assert counted() == (2, 1)
    school_class.admit("has not come")
    assert counted() == (2, 1)
    woken: list[str] = []
    pupil = school_class.sit(school_class.admit("pupil"), lambda: woken.append(""))
    assert pupil is not None
    before = school_class.view(pupil)["beat"]
    school_class.attend(pupil, "follows")
    assert woken
    assert school_class.view(pupil)["beat"] == before + 1


RIDDLE = Riddle(("data:a", "data:b"), ("dots", "star"), 1, {"layer": "x", "channel": 7}, "data:map")


def test_a_riddle_has_points_without_names_that_a_reload_keeps() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher = teacher_of(school_class)
    passes = [school_class.admit(name) for name in "abc"]
    seats = [school_class.sit(each, nothing) for each in passes]
    right, wrong, silent = (seat for seat in seats if seat is not None)
    for number in range(2):
        question = ask_riddle(RIDDLE)
        school_class.ask(question, is_first=number == 0)
        school_class.vote(right, question.number, 1)
        school_class.vote(wrong, question.number, 0)
        school_class.reveal(teacher, question.number)  # which is open still
        assert school_class.view(right)["question"]["phase"] == "open"
        for pupil in (right, wrong):
            school_class.close(pupil, question.number)
            school_class.reveal(pupil, question.number)
        school_class.close(teacher, question.number)
        for _ in range(2):  # it counts once
            school_class.reveal(teacher, question.number)
    assert school_class.view(right)["points"] == {"right": 2, "answered": 2}
    assert school_class.view(wrong)["points"] == {"right": 0, "answered": 2}
    assert school_class.view(silent)["points"] == {"right": 0, "answered": 0}
    assert school_class.view(teacher)["class"] == school_class.view(silent)["class"] == 0.5
    assert "points" not in school_class.view(teacher)
    again = school_class.sit(school_class.admit("a, loaded again"), nothing, passes[0])
    assert again is not None
    assert school_class.view(again)["points"] == {"right": 2, "answered": 2}
    school_class.ask(ask_riddle(RIDDLE), is_first=True)  # another game
    assert school_class.view(again)["points"] == {"right": 0, "answered": 0}
    assert school_class.view(teacher)["class"] is None


def test_nothing_of_the_answer_is_told_before_it_is_revealed() -> None:
    school_class = SchoolClass("ABCDEF")
    teacher, pupil = teacher_of(school_class), seated(school_class)
    question = ask_riddle(RIDDLE)
    school_class.ask(question)
    for step in (nothing, lambda: school_class.close(teacher, question.number)):
        step()
        for seat in (teacher, pupil):
            view = school_class.view(seat)
            assert not {"right", "where"} & set(view["question"])
            assert view["pictures"]["map"] == ""
    school_class.reveal(teacher, question.number)
    view = school_class.view(pupil)
    assert view["question"]["right"] == 1
    assert view["question"]["where"] == {"layer": "x", "channel": 7}
    assert view["pictures"]["map"] == "data:map"
    school_class.ask(read_question("?", "ab", right=0))
    assert "right" not in school_class.view(pupil)["question"]


def test_a_camera_that_went_while_the_line_was_cut_is_not_shown_on() -> None:
    school_class = SchoolClass("ABCDEF")
    before = teacher_of(school_class)
    school_class.show_live(before, "shared")
    woken: list[str] = []
    school_class.sit(school_class.admit("pupil"), lambda: woken.append("pupil"))
    teacher_of(school_class)  # the same page on a new line; the old one is not known to have ended
    assert school_class.live.kind is None
    assert woken
    school_class.rise(before)
    assert school_class.live.kind is None
