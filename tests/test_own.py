import sys
from pathlib import Path

import pytest

import hookviz
from hookviz import own
from hookviz.settings import settings
from tests.conftest import Tiny, as_model, seeded

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

def wrong():
    return "a string"
"""


@pytest.fixture(autouse=True)
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_nets.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_nets", raising=False)


def test_a_factory_a_module_or_a_model_will_do() -> None:
    made = own.build("my_nets:make_net")
    assert (made.name, [layer.name for layer in hookviz.list_layers(made)]) == ("make_net", ["0"])
    assert own.build("my_nets:ready").name == "ready"
    assert own.build("my_nets:make_model").categories == ("a", "b")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("my_nets", "not of the form"),
        (":make_net", "not of the form"),
        ("no_such_nets:make", "'no_such_nets' can't be imported"),
        ("my_nets:make_nte", "Did you mean 'make_net'"),
        ("my_nets:broken", "my_nets:broken failed: no data here"),
        ("my_nets:wrong", "makes a str, not"),
        ("my_nets:number", "makes a int, not"),
    ],
)
def test_what_cannot_be_built_is_named(path: str, reason: str) -> None:
    with pytest.raises(hookviz.ModelError, match=reason):
        own.build(path)


def test_the_setting_puts_a_model_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_MODEL", "my_nets:make_model")
    settings.cache_clear()
    try:
        own.add_from_settings()
        model = own.models()["labelled"]
        spec = own.spec(model)
        assert (spec.title, spec.family, spec.parameters) == ("labelled", "Your own", 2 * 3 * 9 + 2)
    finally:
        own.remove(model)
        settings.cache_clear()
    assert "labelled" not in own.models()


def test_a_model_that_was_replaced_is_not_taken_off_with_the_old_one() -> None:
    old, new = as_model(seeded(Tiny)), as_model(seeded(Tiny))
    own.add(old)
    own.add(new)
    own.remove(old)
    assert own.models()["Tiny"] is new
    own.remove(new)
