import json
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hookviz import __version__
from hookviz.cli import doctor
from hookviz.cli.doctor import Finding, run_check
from hookviz.models import catalog
from hookviz.settings import read_settings, settings
from scripts.servers import free_port
from tests.cli.command import invoke, process
from tests.weights_server import Answer, WeightsServer

BROKEN = 'raise RuntimeError("operator torchvision::nms does not exist")\n'


@pytest.fixture
def server() -> Iterator[WeightsServer]:
    with WeightsServer() as running:
        yield running


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty weights folder of this test's own, and a host that nobody listens on."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    weights_host(monkeypatch, f"http://127.0.0.1:{free_port()}")
    yield tmp_path / "home"
    settings.cache_clear()


def weights_host(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("HOOKVIZ_WEIGHTS_URL", url)
    settings.cache_clear()


def found(subject: str, check: doctor.Check) -> Finding:
    """The first finding of a check about a subject."""
    return next(finding for finding in run_check(check) if finding.subject == subject)


def test_a_sound_installation_is_usable_without_a_network() -> None:
    result = invoke("doctor", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["usable"]) == (0, True)
    findings = {each["subject"]: each for each in report["findings"]}
    assert findings["HookViz"]["text"] == __version__
    assert findings["Python"]["text"].startswith(platform.python_version())
    assert findings["torch"]["text"] == torch.__version__
    assert {subject for subject in findings if findings[subject]["state"] == "ok"} >= {
        *("HookViz", "Python", "torch", "torchvision", "streamlit", "torch builds", "cpu"),
        *("settings", "bundled models", "weights folder", "weights here"),
    }
    assert findings["download"]["state"] == "warning"
    assert "HOOKVIZ_WEIGHTS_URL" in findings["download"]["advice"]


@pytest.mark.parametrize(("status", "state"), [(200, "ok"), (405, "ok"), (404, "warning")])
def test_the_weights_host_is_asked(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch, status: int, state: str
) -> None:
    weights_host(monkeypatch, server.url)
    name = next(spec.name for spec in catalog.list_models() if spec.download_bytes)
    server.add(catalog.weights_path(name).name, b"weights", Answer(status=status))
    finding = found("download", doctor.weights_host)
    assert finding.state == state
    assert server.url in finding.text
    assert [request.method for request in server.requests] == ["HEAD"]
    assert state == "ok" or str(status) in finding.text


def test_a_host_that_says_nothing_is_not_waited_for(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_REACH_SECONDS", 0.2)
    weights_host(monkeypatch, server.url)
    name = next(spec.name for spec in catalog.list_models() if spec.download_bytes)
    server.add(catalog.weights_path(name).name, b"weights", Answer(mute=True))
    assert found("download", doctor.weights_host).state == "warning"
    weights_host(monkeypatch, "file:///etc")
    assert "no http address" in found("download", doctor.weights_host).text


def test_weights_on_this_machine_are_counted_and_verified() -> None:
    assert "0 files" in found("weights folder", doctor.weights_folder).text
    path = catalog.weights_path("resnet18")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 5000)
    assert "1 files, 5.0 kB" in found("weights folder", doctor.weights_folder).text
    [_, damaged] = run_check(doctor.weights)
    assert (damaged.state, damaged.advice) == ("warning", "hookviz fetch resnet18")
    assert str(path) in damaged.text


def test_a_folder_that_can_not_be_written_and_too_much_memory_are_warned_of(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text("a file, no folder")
    folder = found("weights folder", doctor.weights_folder)
    assert found("memory", doctor.settings).state == "ok"
    monkeypatch.setenv("HOOKVIZ_CACHE_MB", "999999999")
    memory = found("memory", doctor.settings)
    assert (folder.state, memory.state) == ("warning", "warning")
    assert "TORCH_HOME" in folder.advice
    assert "HOOKVIZ_CACHE_MB" in memory.advice


def test_a_library_that_is_broken_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(BROKEN)
    run = process("doctor", environment={"PYTHONPATH": str(tmp_path)})
    assert (run.returncode, run.stderr) == (2, "")
    [line] = [line for line in run.stdout.splitlines() if "nms does not exist" in line]
    assert line.startswith("FAIL  torch")
    assert "pip install --force-reinstall" in run.stdout
    assert "1 to put right" in run.stdout


def test_a_check_that_fails_does_not_end_the_others() -> None:
    def my_check() -> Iterator[Finding]:
        yield Finding("first", "ok", "")
        raise ZeroDivisionError("by\nzero")

    assert [(finding.subject, finding.state, finding.text) for finding in run_check(my_check)] == [
        ("first", "ok", ""),
        ("my check", "problem", "by zero"),
    ]

    def asks_for_what_is_wrong() -> Iterator[Finding]:
        read_settings({"HOOKVIZ_CACHE_MB": "many"})
        yield Finding("never", "ok", "")

    [finding] = run_check(asks_for_what_is_wrong)
    assert (finding.state, finding.advice) == ("problem", "")
