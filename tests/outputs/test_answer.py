import pytest
import torch
from torch import Tensor
from torch.nn import functional

import hookviz
from hookviz.outputs.answer import KINDS, Answer, Output, Reading, as_output


def test_a_kind_a_key_an_index_and_a_function_differ() -> None:
    assert [as_output(kind).kind for kind in KINDS] == list(KINDS)
    assert as_output("scores") == Output(part="scores")
    assert as_output(1) == Output(part=1)
    assert as_output(torch.mean).part is torch.mean
    assert as_output(Output("number", unit="years")).unit == "years"
    assert Output(part=torch.mean).key != Output(part=torch.mean).key
    assert Output("binary").key == Output("binary").key
    with pytest.raises(hookviz.SettingError, match=r"output=3\.5 says nothing.*'binary'"):
        as_output(3.5)  # type: ignore[arg-type]
    with pytest.raises(hookviz.SettingError, match="Did you mean 'logits'"):
        Output("logit")


SCORES = torch.tensor([2.0, -1.0, 0.5])


@pytest.mark.parametrize(
    ("kind", "values", "is_share"),
    [
        ("logits", SCORES.softmax(0), True),
        ("multilabel", SCORES.sigmoid(), True),
        ("binary", SCORES.sigmoid(), True),
        ("probabilities", SCORES, True),
        ("boxes", SCORES, True),
        ("number", SCORES, False),
        ("maps", SCORES, False),
        ("", SCORES, False),
    ],
)
def test_scores_become_probabilities_where_they_have_some(
    kind: str, values: Tensor, is_share: bool
) -> None:
    answer = Answer(SCORES, Reading(kind))
    assert torch.equal(answer.values, values)
    assert answer.is_share is is_share
    assert answer.text(0.42).endswith("%") is is_share
    assert bool(answer.reading.question) is (kind == "")


def test_an_answer_is_shown_as_its_kind_has_it() -> None:
    answer = Answer(torch.tensor([57.0]), Reading("number", "years"))
    assert answer.top(5, ()) == ((0, "number 0", 0.0, "57.0 years"),)
    assert Answer(torch.tensor([0.3]), Reading()).top(5, ()) == ((0, "output 0", 0.0, "0.300"),)
    answer = Answer(SCORES, Reading("maps"), areas=torch.tensor([0.1, 0.9, 0.0]))
    (top,) = answer.top(1, ("sky", "cat"))
    assert (top.number, top.name, top.text) == (1, "cat", "90.0 %")
    assert top.share == pytest.approx(0.9)
    answer = Answer(torch.tensor([0.0, 0.9, 0.0]), Reading("boxes"))
    assert [top.number for top in answer.top(5, ())] == [1]
    answer = Answer(SCORES, Reading("embedding"))
    assert answer.top(5, ()) == ()
    with pytest.raises(hookviz.HookVizError, match="embedding of 3 numbers"):
        answer.likeliest(5)


@pytest.mark.parametrize("target", [0, 2])
def test_a_loss_is_that_of_training(target: int) -> None:
    rows = SCORES[None]
    right = torch.tensor([target])
    assert Reading("logits").loss(rows, target) == functional.cross_entropy(rows, right)
    sigmoid = functional.binary_cross_entropy_with_logits(rows[:, target], torch.ones(1))
    torch.testing.assert_close(Reading("multilabel").loss(rows, target)[0], sigmoid)
    shares = rows.softmax(1)
    torch.testing.assert_close(
        Reading("probabilities").loss(shares, target), Reading("logits").loss(rows, target)
    )
    assert Reading("number").loss(rows, target) == -rows[0, target]
