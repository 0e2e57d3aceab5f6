import importlib
import sys
from pathlib import Path

import pytest
import torch

import hookviz
from hookviz.language.speaking import speaking
from hookviz.models import user_models
from hookviz.settings import settings
from tests.cli.command import mistake, output_of
from tests.networks import Tiny, as_model, random_input, seeded
from tests.repositories import LABELS, save, vit


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt2"
    network = seeded(Tiny).eval()
    torch.export.save(torch.export.export(network, (random_input(0),)), path)
    return path


def test_an_exported_program_has_its_layers_and_its_values(file: Path) -> None:
    model = user_models.build(str(file))
    plain = hookviz.wrap(seeded(Tiny), hookviz.Preprocess(resize=16, crop=16))
    assert (model.name, model.preprocess) == ("net", plain.preprocess)
    for kind in ("conv", "all"):
        listed, expected = (hookviz.list_layers(each, kind=kind) for each in (model, plain))
        assert [layer.name for layer in listed] == [layer.name for layer in expected]
        assert [layer.output_shape for layer in listed] == [
            layer.output_shape for layer in expected
        ]
    one, other = (hookviz.capture(each, random_input(3)) for each in (model, plain))
    assert all(torch.equal(one[name].values, other[name].values) for name in other)
    assert one.logits is not None
    assert other.logits is not None
    assert torch.equal(one.logits, other.logits)
    for lens in ("verify", "grad-cam", "health", "kernels"):
        assert hookviz.run_lens(lens, model, random_input(3)).panels
    assert "conv1" in output_of("layers", file)  # the shell takes it too


def test_other_files_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "net.pt2"
    damaged.write_bytes(b"nothing of the kind")
    script = tmp_path / "net.ts"
    script.write_bytes(b"whatever it holds")
    for path, reason in (
        (damaged, "net.pt2 is no program of torch.export"),
        (script, "net.ts is TorchScript.*torch.export.save"),
        (tmp_path / "none.pt2", "There is no file .*none.pt2"),
    ):
        with pytest.raises(hookviz.ModelError, match=reason):
            user_models.build(str(path))
    assert "There is no file" in mistake("run", "--model", tmp_path / "none.pt2")


pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is about to go


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


def test_a_factory_a_module_a_model_or_a_repository_will_do(tmp_path: Path) -> None:
    made = user_models.build("my_nets:make_net")
    assert (made.name, [layer.name for layer in hookviz.list_layers(made)]) == ("make_net", ["0"])
    assert user_models.build("my_nets:ready").name == "ready"
    assert user_models.build("my_nets:make_model").categories == ("a", "b")
    assert user_models.build(f"hf:{save(vit(), tmp_path / 'vit')}").categories == LABELS


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


def test_the_setting_puts_a_model_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_MODEL", "my_nets:make_model")
    settings.cache_clear()
    try:
        user_models.add_from_settings()
        model = user_models.models()["labelled"]
        spec = user_models.spec(model)
        assert (spec.title, spec.family, spec.parameters) == ("labelled", "Your own", 2 * 3 * 9 + 2)
        with speaking("zh_CN"):  # the family is compared, and so the same in every language
            assert user_models.spec(model).family == user_models.FAMILY
    finally:
        user_models.remove(model)
        settings.cache_clear()
    assert "labelled" not in user_models.models()
    old, new = as_model(seeded(Tiny)), as_model(seeded(Tiny))
    for each in (old, new):
        user_models.add(each)
    user_models.remove(old)  # which was replaced
    assert user_models.models()["Tiny"] is new
    user_models.remove(new)
