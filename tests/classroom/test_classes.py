from itertools import count

import pytest

from hookviz.classroom.classes import Classes, OtherServerError
from hookviz.classroom.codes import LETTERS, shown_code
from hookviz.classroom.school_class import TEACHER_GONE_S, SchoolClass
from hookviz.errors import ClassroomError
from hookviz.serving.rate_limiter import GuessLimiter

_NUMBERS = count()


def begin(classes: Classes) -> SchoolClass:
    """A class begun by a session and from an address that have begun none before."""
    return classes.begin(f"session {next(_NUMBERS)}", f"address {next(_NUMBERS)}")


def test_a_class_is_found_by_its_code_until_it_ends() -> None:
    classes = Classes(3)
    begun, other = begin(classes), begin(classes)
    assert classes.find(shown_code(begun.code).lower(), "pupil") is begun
    assert classes.taught(begun.code, begun.secret_for_the_teacher()) is begun
    assert classes.taught(begun.code, other.secret_for_the_teacher()) is None
    assert classes.taught(other.code, begun.secret_for_the_teacher()) is None
    classes.end(begun)
    assert begun.sit(begun.secret_for_the_teacher(), lambda: None) is None
    assert classes.taught(begun.code, begun.secret_for_the_teacher()) is None
    with pytest.raises(ClassroomError, match=f"No class has the code {shown_code(begun.code)}"):
        classes.find(begun.code, "pupil")
    assert len(classes) == 1


def test_there_are_as_many_as_may_be_and_none_where_none_may() -> None:
    classes = Classes(2)
    first = begin(classes)
    begin(classes)
    with pytest.raises(ClassroomError, match="2 classes are going on here"):
        begin(classes)
    classes.end(first)
    begin(classes)
    assert not Classes(0).are_on
    with pytest.raises(ClassroomError, match="HOOKVIZ_CLASSES=0"):
        begin(Classes(0))


def test_a_session_has_one_class_and_an_address_half_of_all() -> None:
    classes = Classes(4)
    first = classes.begin("ann", "203.0.113.1")
    with pytest.raises(ClassroomError, match="This page has begun a class"):
        classes.begin("ann", "198.51.100.7")
    classes.begin("eve", "203.0.113.1")
    for session in ("new", "newer"):
        with pytest.raises(ClassroomError, match="2 classes of your network"):
            classes.begin(session, "203.0.113.1")
    classes.begin("bob", "198.51.100.7")
    classes.end(first)
    assert classes.begin("ann", "203.0.113.1") is not first


def test_a_class_or_a_session_that_is_over_makes_room() -> None:
    time = [0.0]
    classes = Classes(1, now=lambda: time[0])
    left = begin(classes)
    time[0] = TEACHER_GONE_S + 1
    assert begin(classes) is not left
    assert left.sit(left.secret_for_the_teacher(), lambda: None) is None
    classes = Classes(2)
    begun = begin(classes)
    token = begun.admit("pupil")
    classes.leave("pupil")
    assert begun.sit(token, lambda: None) is None


def test_a_code_can_not_be_guessed_even_by_who_then_has_it() -> None:
    time = [0.0]
    limiter = GuessLimiter(of_session=4, now=lambda: time[0])
    classes = Classes(3, wrong_codes=limiter, now=lambda: time[0])
    begun = begin(classes)
    wrong = next(code for code in ("AAAAAA", "BBBBBB") if code != begun.code)
    for typed in (wrong, "", "K7", "0ILO15"):
        with pytest.raises(ClassroomError, match=r"No class has|six letters"):
            classes.find(typed, "guesser")
    with pytest.raises(ClassroomError, match="Too many wrong codes"):
        classes.find(begun.code, "guesser")
    assert classes.find(begun.code, "pupil") is begun
    time[0] = 61.0
    assert classes.find(begun.code, "guesser") is begun


def test_wrong_codes_lock_nobody_else_out_at_their_address_either() -> None:
    classes = Classes(3, now=lambda: 0.0)
    begun = begin(classes)
    for number in range(60):
        with pytest.raises(ClassroomError, match="six letters"):
            classes.find("K7", f"session {number}", "203.0.113.1")
    assert classes.find(begun.code, "pupil", "203.0.113.1") is begun
    for _ in range(3):
        with pytest.raises(ClassroomError, match="six letters"):
            classes.find("K7", "a new session", "203.0.113.1")
    with pytest.raises(ClassroomError, match="Too many wrong codes"):
        classes.find(begun.code, "a new session", "203.0.113.1")


def test_a_code_names_its_server() -> None:
    servers = [Classes(3, server=number) for number in range(3)]
    begun = begin(servers[1])
    assert begun.code[0] == LETTERS[1]
    assert servers[1].find(begun.code, "pupil") is begun
    with pytest.raises(OtherServerError, match="at another server of this site"):
        servers[2].find(begun.code, "pupil")
    other = begun.code[:-1] + LETTERS[LETTERS.index(begun.code[-1]) - 1]
    with pytest.raises(ClassroomError, match="or it is over") as found:
        servers[1].find(other, "pupil")
    assert not isinstance(found.value, OtherServerError)
