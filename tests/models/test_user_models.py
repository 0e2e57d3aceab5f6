import importlib
import sys
from pathlib import Path

import pytest

import hookviz
from hookviz.language.speaking import speaking
from hookviz.models import user_models
from hookviz.settings import settings
from tests.networks import Tiny, as_model, seeded
from tests.repositories import LABELS, save, vit

FACTORIES = """
import torch
from torch import nn
import hookviz

def make_net():
    return nn.Sequential(nn.Conv2d(3, 2, 3))

def make_model():
    return hookviz.wrap(make_net(), categories=["a", "b"], name="labelled")

ready = make_net()
number = 7

def broken():
    raise ValueError("no data here")

def leaves():
    raise SystemExit(3)

def wrong():
    return "a string"
"""


@pytest.fixture(autouse=True)
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_nets.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_nets", raising=False)


def test_a_factory_a_module_or_a_model_will_do() -> None:
    made = user_models.build("my_nets:make_net")
    assert (made.name, [layer.name for layer in hookviz.list_layers(made)]) == ("make_net", ["0"])
    assert user_models.build("my_nets:ready").name == "ready"
    assert user_models.build("my_nets:make_model").categories == ("a", "b")


def test_a_repository_of_hugging_face_will_do_too(tmp_path: Path) -> None:
    folder = save(vit(), tmp_path / "vit")
    assert user_models.build(f"hf:{folder}").categories == LABELS


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("my_nets", "not of the form"),
        ("no_such_nets:make", "'no_such_nets' can't be imported"),
        ("my_nets:make_nte", "Did you mean 'make_net'"),
        ("my_nets:make net", "not of the form"),
        ("my_nets:x", "has no 'x'.$"),
        ("my_nets:broken", r"my_nets:broken failed: ValueError: no data here \(my_nets.py, line"),
        ("my_nets:leaves", "my_nets:leaves failed: SystemExit: 3"),
        ("my_nets:wrong", "makes a str, not"),
        ("my_nets:number", "makes a int, not"),
    ],
)
def test_what_cannot_be_built_is_named(path: str, reason: str) -> None:
    with pytest.raises(hookviz.ModelError, match=reason):
        user_models.build(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def make(:\n", r"invalid syntax \(odd_nets.py, line 1\)"),
        ("\0", "null bytes"),
        ("\n1 / 0\n", r"ZeroDivisionError: division by zero \(odd_nets.py, line 2\)"),
        ("raise SystemExit(0)", r"SystemExit: 0 \(odd_nets.py, line 1\)"),
        ("raise RuntimeError", r"imported: RuntimeError \(odd_nets.py, line 1\)\.$"),
        ("import no_such_library", "No module named 'no_such_library'"),
    ],
)
def test_a_module_that_fails_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    (tmp_path / "odd_nets.py").write_text(text)
    monkeypatch.delitem(sys.modules, "odd_nets", raising=False)
    importlib.invalidate_caches()
    with pytest.raises(hookviz.ModelError, match=reason) as caught:
        user_models.build("odd_nets:make")
    assert "The module 'odd_nets' can't be imported" in str(caught.value)


def test_the_family_is_compared_and_so_the_same_in_every_language() -> None:
    """It was said in Chinese, and the page found no network of that family."""
    with speaking("zh_CN"):
        assert user_models.spec(as_model(seeded(Tiny))).family == user_models.FAMILY


def test_the_setting_puts_a_model_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_MODEL", "my_nets:make_model")
    settings.cache_clear()
    try:
        user_models.add_from_settings()
        model = user_models.models()["labelled"]
        spec = user_models.spec(model)
        assert (spec.title, spec.family, spec.parameters) == ("labelled", "Your own", 2 * 3 * 9 + 2)
    finally:
        user_models.remove(model)
        settings.cache_clear()
    assert "labelled" not in user_models.models()


def test_a_model_that_was_replaced_is_not_taken_off_with_the_old_one() -> None:
    old, new = as_model(seeded(Tiny)), as_model(seeded(Tiny))
    user_models.add(old)
    user_models.add(new)
    user_models.remove(old)
    assert user_models.models()["Tiny"] is new
    user_models.remove(new)
