import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookviz.engines.choosing import engine_of
from hookviz.engines.engine import in_this_process
from hookviz.errors import EngineError, SettingError

ROOT = Path(__file__).parent.parent.parent


def test_this_process_is_local_and_an_engine_is_itself() -> None:
    assert engine_of("local") is in_this_process
    assert engine_of(in_this_process) is in_this_process


@pytest.mark.parametrize(
    ("engine", "workers", "message"),
    [
        ("rya", None, r"'rya' is none of 'local', 'ray' and 'ray://HOST:PORT'"),
        ("ray://", None, "none of 'local'"),
        (7, None, "engine=7 is none of"),
        ("ray", 0, "workers=0 is no whole number above 0"),
        ("ray", True, "workers=True is no whole"),
        ("local", 2, "workers= is for engine='ray'"),
    ],
)
def test_what_is_no_engine(engine: Any, workers: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        engine_of(engine, workers)


def test_without_ray_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("hookviz.engines.ray")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name == "ray" or name.startswith("ray.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"pip install 'hookviz\[ray\]'.*engine='local' works"):
        engine_of("ray")


@pytest.mark.sweep("by day what is imported at a top: tests/test_architecture.py")
def test_nothing_of_ray_is_imported_without_it() -> None:
    """By the library, by every command's module, and by a job in this process."""
    program = """
import importlib, sys, hookviz
from hookviz.cli.main import COMMANDS
for name in hookviz.__all__:
    getattr(hookviz, name)
for name in COMMANDS:
    importlib.import_module(f"hookviz.cli.{name}")
model = hookviz.load_model("shapesnet")
hookviz.extract_features(model, ["assets/samples/cat.jpg"])
assert not [name for name in sys.modules if name.partition(".")[0] == "ray"], "ray"
assert "pyarrow.fs" not in sys.modules, "pyarrow.fs"
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
