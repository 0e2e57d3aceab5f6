import pytest

from hookviz.classroom.question import (
    LONGEST_ANSWER,
    LONGEST_GUESS,
    LONGEST_QUESTION,
    Poll,
    Question,
    Riddle,
    ask_riddle,
    read_guess,
    read_question,
)
from hookviz.errors import ClassroomError


def test_a_question_its_right_answer_and_a_guess_are_read() -> None:
    question = read_question("  Which\nmap? ", ["A", "", "  B\t2 ", "\u202e", "<b>C</b>"])
    assert question.words == "Which map?"
    assert question.answers == ("A", "B 2", "<b>C</b>")
    assert read_question("?", "AB").number != question.number
    assert read_question("?", "AB").is_like(read_question("? ", "AB"))
    assert not read_question("?", "AB").is_like(read_question("?", "BA"))
    assert not question.is_like(None)
    assert read_guess("  cat\near\u202e s ") == "cat ear s"
    assert read_guess("\u200b \n") == ""
    assert len(read_guess("x" * 5000)) == LONGEST_GUESS
    assert read_question("?", ["a", "", "b"], right=1).right == 1
    assert read_question("?", "ab").right is None
    for number in (-1, 2):
        with pytest.raises(ClassroomError, match=f"no answer {number + 1} that could be right"):
            read_question("?", "ab", right=number)


@pytest.mark.parametrize(
    ("words", "answers", "said"),
    [
        ("", ["a", "b"], "no words"),
        ("\u200b", ["a", "b"], "no words"),
        ("?", ["a"], "this one has 1"),
        ("?", list("abcdefg"), "this one has 7"),
        ("?", ["yes", "no", " yes "], "“yes” is there twice"),
        ("?" * (LONGEST_QUESTION + 1), ["a", "b"], "301 letters"),
        ("?", ["a", "b" * (LONGEST_ANSWER + 1)], "121 letters"),
    ],
)
def test_what_can_not_be_asked_is_told(words: str, answers: list[str], said: str) -> None:
    with pytest.raises(ClassroomError, match=said):
        read_question(words, answers)


def riddle(*names: str, right: int | None = None) -> Question:
    where: dict[str, str | int] = {"channel": 3, "layer": "conv1"}
    return ask_riddle(Riddle(("data:patch",), names, right, where, "data:map"))


def test_a_question_about_a_channel_names_its_layer_from_the_beginning() -> None:
    assert Poll(riddle("a", "b")).view()["layer"] == "conv1"


def test_answers_are_counted_one_of_each_and_closing_tells_what_is_right() -> None:
    poll = Poll(read_question("?", "abc", right=2))
    for who, answer in (("x", 0), ("y", 2), ("z", 1), ("x", 2)):
        assert poll.vote(who, answer)
    assert poll.view_of_teacher()["tally"] == [0, 1, 2]
    assert poll.view_of_teacher()["answered"] == 3
    assert poll.view_of("x")["mine"] == 2
    assert poll.view_of("nobody")["mine"] is None
    assert not {"tally", "right", "answered"} & set(poll.view_of("x"))
    poll.close()
    assert poll.phase == "revealed"
    assert poll.view_of("x")["tally"] == [0, 1, 2]
    assert poll.view_of("x")["right"] == 2
    assert not poll.vote("w", 1)
    assert poll.reveal() == {}  # no points but for riddles


@pytest.mark.parametrize("answer", [-1, 3, "a", "b"])
def test_no_other_answer_counts(answer: int | str) -> None:
    poll = Poll(read_question("?", "abc"))
    assert not poll.vote("x", answer)
    assert poll.view_of("x")["mine"] is None


def test_whoever_leaves_takes_an_open_vote_along_and_what_a_school_writes_is_bounded() -> None:
    poll = Poll(read_question("?", "ab"))
    poll.vote("x", 0)
    poll.vote("y", 1)
    poll.forget("x")
    assert poll.view_of_teacher()["tally"] == [0, 1]
    poll.move("y", "y again")
    assert poll.view_of("y again")["mine"] == 1
    poll.close()
    poll.forget("y again")
    assert poll.view()["tally"] == [0, 1]
    poll = Poll(riddle())
    for number in range(200):
        poll.vote(str(number), f"word {number}")
    poll.close()
    assert len(poll.view_of_teacher()["texts"]) == 60
    assert poll.view_of_teacher()["answered"] == 200


def test_a_riddle_is_closed_first_and_revealed_then() -> None:
    poll = Poll(riddle("dots", "star", "grid", "ring", right=1))
    poll.vote("x", 1)
    poll.vote("y", 3)
    assert poll.reveal() == {}
    poll.close()
    assert poll.phase == "closed"
    assert poll.view()["tally"] == [0, 1, 0, 1]
    assert not {"right", "where"} & {*poll.view(), *poll.view_of_teacher()}
    assert poll.pictures() == {"number": poll.question.number, "patches": ["data:patch"], "map": ""}
    assert poll.reveal() == {"x": True, "y": False}
    assert poll.reveal() == {}
    assert poll.view()["right"] == 1
    assert poll.view()["where"] == {"channel": 3, "layer": "conv1"}
    pictures = poll.pictures()
    assert pictures is not None
    assert pictures["map"] == "data:map"


def test_words_of_ones_own_are_the_teachers_until_she_reveals_the_right_ones() -> None:
    poll = Poll(riddle())
    assert poll.vote("a", "  Cat ear ")
    assert poll.vote("b", "cat EAR")
    assert poll.vote("c", "rude " * 20)
    assert not poll.vote("d", " \u200b")
    assert not poll.vote("d", 0)
    assert "texts" not in poll.view_of_teacher()  # her screen is on the wall
    poll.mark("cat ear")  # which is too early
    poll.close()
    rude = ("rude " * 20)[:LONGEST_GUESS].strip()
    assert poll.view_of_teacher()["texts"] == [["Cat ear", 2, False], [rude, 1, False]]
    assert "texts" not in poll.view_of("a")
    for text in (rude, "nobody said so", "CAT EAR", rude):  # one was a slip
        poll.mark(text)
    assert poll.view_of_teacher()["texts"] == [["Cat ear", 2, True], [rude, 1, False]]
    assert poll.reveal() == {"a": True, "b": True, "c": False}
    assert poll.view_of("c")["texts"] == [["Cat ear", 2, True]] == poll.view_of_teacher()["texts"]
    assert poll.view_of("c")["mine"] == rude
    poll.mark(rude)
    assert poll.view_of("a")["texts"] == [["Cat ear", 2, True]]
