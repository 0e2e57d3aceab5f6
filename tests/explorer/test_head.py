"""What stands above the explorer, against the capture itself."""

import pytest
from torch import nn

import hookviz
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.explorer.subjects import asked, subject_of
from tests.networks import Tiny, as_model, seeded


def test_classes_are_the_capture_s_with_their_shares(subject: Subject) -> None:
    facts, picture = answer(subject, View(), Question("head"))
    cap = hookviz.capture(subject.model, subject.image)
    expected = cap.predictions(5)
    assert [each["name"] for each in facts["classes"]] == [name for name, _ in expected]
    shares = [each["share"] for each in facts["classes"]]
    assert shares == pytest.approx([chance for _, chance in expected], rel=1e-3)
    assert facts["classes"][0]["says"].endswith("%")
    assert facts["note"] == ""
    assert picture.startswith(b"\x89PNG")


def test_random_weights_and_a_network_without_classes_are_said() -> None:
    random = subject_of(hookviz.load_model("shapesnet", weights="random"), "star")
    assert "random" in asked(random, "head", View())["note"]
    rows = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2))
    facts = asked(subject_of(as_model(rows), "star"), "head", View())
    assert (facts["classes"], facts["note"]) == ([], "This network puts out no class scores.")
    open_ = asked(subject_of(hookviz.wrap(seeded(Tiny)), "star"), "head", View())
    assert "Nobody said" in open_["note"]
    assert all("%" not in each["says"] and each["share"] == 0 for each in open_["classes"])
    trained = as_model(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(), nn.Flatten(2)).train())
    note = asked(subject_of(trained, "star"), "head", View())["note"]
    assert "no class scores. It is in training mode" in note
    vector = hookviz.wrap(seeded(Tiny), output="embedding")
    facts = asked(subject_of(vector, "star"), "head", View())
    assert facts["classes"] == []
    assert "an embedding of 5 numbers" in facts["note"]
