import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookviz.engines.engine import TotalProgress, engine_of, in_this_process
from hookviz.errors import EngineError, SettingError
from tests.engines.jobs import Doubling

ROOT = Path(__file__).parent.parent.parent


def test_this_process_works_shard_by_shard_and_is_local() -> None:
    seen: list[str] = []

    def asked(number: int) -> tuple[int, ...]:
        seen.append(f"asked for {number}")
        return (number,)

    results = in_this_process(Doubling(), map(asked, range(3)), lambda _done, _left_out: None)
    seen.extend(f"took in {result[0] // 2}" for result in results)
    assert seen == [f"{what} {number}" for number in range(3) for what in ("asked for", "took in")]
    assert engine_of("local") is in_this_process
    assert engine_of(in_this_process) is in_this_process


def test_progress_is_summed_up_and_whoever_hears_it_can_end_the_job() -> None:
    reported: list[tuple[float, int]] = []
    list(in_this_process(Doubling(), [(1, 2), (3,)], lambda *now: reported.append(now)))
    assert reported == [(1, 0), (2, 0), (3, 0)]
    reported = []
    total = TotalProgress(lambda *now: reported.append(now))
    for number, done, left_out in [(0, 4, 1), (1, 2, 0), (0, 1, 0), (0, 4, 1), (0, 6, 2)]:
        total.shard(number, done, left_out)
    assert reported == [(4, 1), (6, 1), (8, 2)]

    def end(_done: float, _left_out: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(in_this_process(Doubling(), [(1, 2)], end))


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
import sys, hookviz
from hookviz.cli.main import COMMANDS, find_command
for name in hookviz.__all__:
    getattr(hookviz, name)
for name in COMMANDS:
    find_command(name)
model = hookviz.load_model("shapesnet")
hookviz.extract_features(model, ["assets/samples/cat.jpg"])
assert not [name for name in sys.modules if name.partition(".")[0] == "ray"], "ray"
assert "pyarrow.fs" not in sys.modules, "pyarrow.fs"
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
