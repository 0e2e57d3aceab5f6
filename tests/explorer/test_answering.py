"""A question that is none is refused with the nearest one; any link's view gets an answer."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import hookviz
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question, QuestionError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View, choices
from tests.explorer.asking import ask


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tile", "There is no question 'tile'. The nearest is 'tiles'."),
        ("", "There is no question ''"),
        ("x" * 10_000, "There is no question 'xxx"),
        ("<script>", "There is no question '<script>'"),
    ],
)
def test_what_is_no_question_is_refused(subject: Subject, name: str, words: str) -> None:
    with pytest.raises(QuestionError) as refused:
        answer(subject, View(), Question(name))
    assert str(refused.value).startswith(words)
    assert len(str(refused.value)) < 200
    assert isinstance(refused.value, hookviz.HookVizError)


LINKS = some.dictionaries(
    some.sampled_from([each.word for each in choices().values()]),
    some.text(max_size=20)
    | some.sampled_from(["stem", "stage1.relu", "head", "max", "16", "true", "999,999,1,1", "A"]),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(link=LINKS, name=some.sampled_from(["layers", "tree", "tiles", "field", "photograph"]))
def test_whatever_a_link_says_there_are_layers_and_tiles(
    subject: Subject, link: dict[str, str], name: str
) -> None:
    found = ask(subject, name, View.of_link(link))
    json.dumps(found.facts, allow_nan=False)
    assert bool(found.data) == (name in {"tiles", "photograph"})
    assert "kind" not in found.facts  # which a message has beside them
