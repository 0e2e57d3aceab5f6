from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from hookviz.explaining.patching.channel_mask import read_channel_mask
from hookviz.explorer.subject import Colours
from hookviz.ui.serving.explorer_sessions import (
    ExplorerSessions,
    PinnedScene,
    Scene,
    explorer_sessions,
)
from hookviz.ui.serving.queue_wait import _on_session_end
from tests.ui.serving.explorer_server import scene

PINNED = PinnedScene("sample=Mug", "A mug", "ShapesNet", "stem.first.conv")
FILE: Any = SimpleNamespace(file_id="f1")


def test_a_session_has_one_token_and_another_key_for_another_scene() -> None:
    sessions = ExplorerSessions()
    token, key = sessions.offer("me", "cookie", scene(1))
    again, same = sessions.offer("me", "cookie of later", scene(1))
    assert (again, same) == (token, key)
    other, another = sessions.offer("me", "cookie", scene(2))
    assert (other, another != key) == (token, True)
    found = sessions.find(token)
    assert found is not None
    assert (found.owner, found.cookie, found.scene.key) == ("me", "cookie", another)
    assert sessions.offer("you", "cookie", scene(1))[0] != token


def test_a_token_is_good_until_the_session_ends_and_nobody_elses_is() -> None:
    sessions = ExplorerSessions()
    token, _ = sessions.offer("me", "cookie", scene())
    kept, _ = sessions.offer("you", "cookie", scene())
    mine = sessions.find(token)
    assert mine is not None
    for owner in ("me", "me", "nobody"):
        sessions.withdraw(owner)
    assert mine.is_over
    assert sessions.find(token) is None
    assert sessions.find("") is None
    assert sessions.find(kept) is not None
    assert sessions.offer("me", "cookie", scene())[0] != token


def test_it_ends_with_the_pages_session() -> None:
    token, _ = explorer_sessions().offer("me", "cookie", scene())
    _on_session_end("me")
    assert explorer_sessions().find(token) is None


CHANGES: list[Callable[[Scene], dict[str, Any]]] = [
    lambda old: {"choice": replace(old.choice, weights="random")},
    lambda old: {"choice": replace(old.choice, checkpoint=FILE)},
    lambda old: {"choice": replace(old.choice, labels=FILE)},
    lambda old: {"choice": replace(old.choice, mask=read_channel_mask("stem.first.conv:3"))},
    lambda _: {"model_digest": "another"},
    lambda _: {"model_input": scene(5).model_input},
    lambda _: {"image": scene(5).image},
    lambda _: {"alt": "something else"},
    lambda _: {"image_title": "Mug"},
    lambda _: {"model_title": "ShapesNet, random weights"},
    lambda _: {"colours": Colours("coolwarm", "gray")},
    lambda _: {"pinned": PINNED},
    lambda _: {"pinned": replace(PINNED, error="It is not here.")},
    lambda old: {"pinned": replace(PINNED, choice=old.choice)},
    lambda old: {"pinned": replace(PINNED, model_input=old.model_input)},
    lambda _: {"image_names": {"digest": "Mug"}},
]


def test_the_key_is_another_one_for_whatever_is_another() -> None:
    old = scene(1)
    keys = [old.key, *(replace(old, **change(old)).key for change in CHANGES)]
    assert len(set(keys)) == len(keys)
    assert replace(old).key == old.key
    assert scene(1).key == old.key  # of another page run, with a cache of its own
    for key in keys:
        assert len(key) == 24
        assert old.image.digest[:8] not in key
