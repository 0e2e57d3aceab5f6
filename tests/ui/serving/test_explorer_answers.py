import threading
import time
from dataclasses import replace
from typing import Any

import pytest

import hookviz
from hookviz.explorer.question import NotThereError, Question, ignore_report
from hookviz.explorer.view import View
from hookviz.serving import capacity, turns
from hookviz.ui.serving import explorer_answers, resources
from hookviz.ui.serving.explorer_answers import ExplorerAnswer, answer_lens
from hookviz.ui.serving.explorer_messages import Message
from hookviz.ui.serving.explorer_sessions import ExplorerSessions, Scene
from tests.explorer.subjects import Turns, subject_of
from tests.live.turns import held_up
from tests.ui.serving.explorer_server import CHOICE, scene


def answering(
    shown: Scene, name: str, language: str = "en", **facts: object
) -> tuple[ExplorerAnswer, list[Message]]:
    """An answer on its way, and what is told of it."""
    sessions, told = ExplorerSessions(), list[Message]()
    token, _ = sessions.offer("me", "cookie", shown)
    offer = sessions.find(token)
    assert offer is not None
    of = (offer, offer.scene, View(), Question(name, facts))
    return ExplorerAnswer(*of, language=language, tell=told.append), told


def test_what_is_kept_needs_no_turn_and_what_is_not_is_computed_in_one() -> None:
    shown = scene(8)
    own, told = answering(shown, "tiles")
    with held_up():
        assert own.cached_or_none() is None
    own.compute()
    assert told[-1].kind == "answer"
    with held_up():  # when nobody has a turn
        again = answering(shown, "tiles")[0].cached_or_none()
    assert again is not None
    assert again.kind == "answer"
    assert again.packed[-100:] == told[-1].packed[-100:]  # the end of the picture


def test_a_network_that_the_process_let_go_of_is_loaded_in_a_thread_that_may_take_its_time() -> (
    None
):
    choice = replace(CHOICE, weights="random")
    with resources.use_model(choice) as network:
        shown = replace(scene(9), choice=choice, model_digest=network.digest)
    capacity.model_pool().evict_unused()
    own, told = answering(shown, "layers")
    assert own.cached_or_none() is None
    own.compute()
    assert [each.kind for each in told] == ["progress", "answer"]
    assert told[0].facts["says"] == "Loading ShapesNet"
    other, told = answering(replace(shown, model_digest="of before"), "layers")
    other.compute()  # of another network by the same name
    assert (told[-1].kind, told[-1].facts["status"]) == ("refused", 409)
    assert answering(shown, "layers")[0].cached_or_none() is not None


def test_who_waits_is_told_in_their_language_and_not_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.0)
    own, told = answering(scene(10), "tiles", "zh_CN")
    thread = threading.Thread(target=own.compute)
    with held_up():
        thread.start()
        time.sleep(1.5)
    thread.join(30)
    waits = [each for each in told if each.kind == "waits"]
    assert 2 <= len(waits) <= 5
    assert waits[0].facts["position"] == 1
    assert "queue" not in waits[0].facts["says"]
    assert told[-1].kind == "answer"


def test_nothing_is_said_to_who_has_gone_and_a_visitors_words_are_not_counted() -> None:
    own, told = answering(scene(11), "tiles")
    own.is_gone = True
    own.compute()
    assert told == []
    assert capacity.queue().running == 0
    assert own.known_name == "tiles"
    assert answering(scene(), "a visitor's words")[0].known_name == ""


def test_a_small_answer_of_a_lens_takes_one_turn_and_is_of_a_sample_where_it_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns_taken = Turns()
    subject = subject_of(hookviz.load_model("shapesnet"), take_turn=turns_taken)

    def small(lens: str) -> tuple[Any, bytes]:
        return answer_lens(subject, View(), {"lens": lens}, ignore_report)

    facts, picture = small("kernels")
    assert picture or facts["rows"]
    assert not facts["ofSample"]
    assert small("kernels") == (facts, picture)
    assert len(turns_taken.taken) == 1
    monkeypatch.setattr(explorer_answers, "LENS_MAX_S", -1.0)
    assert small("occlusion")[0]["ofSample"]
    with pytest.raises(NotThereError, match="fly"):
        small("fly")
