import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import hookviz
from scripts.children import child
from scripts.servers import serve
from tests.capturing.test_feature_vectors import made
from tests.cli.command import ROOT, mistake, process
from tests.loops import until
from tests.networks import Tiny, as_model
from tests.pictures import encoded, picture
from tests.repositories import save, vit

KEEPER = """
import os, sys
from hookviz.cli import run
run._PAUSE, run._PATIENCE = float(sys.argv[1]), float(sys.argv[2])
programs = zip("AB", sys.argv[3:])
sys.exit(run.keep_up([
    run.Process(name, [sys.executable, "-S", "-c", program], dict(os.environ))
    for name, program in programs
]))
"""
BUSY = """
import os, signal, sys, time
def finish(*_):
    time.sleep(0.3)
    os.write(1, b"finished\\n")
    sys.exit()
signal.signal(signal.SIGTERM, finish)
os.write(1, b"up %d\\n" % os.getpid())  # in one piece: two write into one file
while True:
    time.sleep(0.1)
"""
"""Says its process, and ends a little after it was asked to."""

STUBBORN = BUSY.replace("finish)", "signal.SIG_IGN)")
KILLED = "import os; os.kill(os.getpid(), 9)"


@contextmanager
def keeping(
    output: Path, *programs: str, pause: float = 0.0, patience: float = 30.0
) -> Iterator["subprocess.Popen[str]"]:
    with (
        output.open("w") as stream,
        child(
            [sys.executable, "-c", KEEPER, str(pause), str(patience), *programs],
            cwd=ROOT,
            stdout=stream,
            stderr=subprocess.STDOUT,
        ) as keeper,
    ):
        yield keeper


def pids(output: Path) -> list[int]:
    lines = output.read_text().split("\n")
    return [int(line.split()[1]) for line in lines if line.startswith("up ")]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells children of their parent's end")
def test_all_end_with_one_that_is_killed(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = [sys.executable, "-c", KEEPER, "0", "30", BUSY, BUSY]
    # No guard stands between here, who would end them.
    with output.open("w") as stream, subprocess.Popen(command, cwd=ROOT, stdout=stream) as keeper:
        try:
            until(lambda: len(pids(output)) == 2)
            keeper.kill()
            until(lambda: output.read_text().count("finished") == 2)
        finally:
            keeper.kill()
            for pid in pids(output):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_signal_is_passed_on_and_what_goes_on_may_end(tmp_path: Path) -> None:
    """Ctrl-C; the tests below send the signal to terminate."""
    output = tmp_path / "output"
    with keeping(output, BUSY, BUSY) as keeper:
        until(lambda: len(pids(output)) == 2)
        keeper.send_signal(signal.SIGINT)
        assert keeper.wait(60) == 0
    assert output.read_text().count("finished") == 2
    assert "hookviz:" not in output.read_text()


def test_what_is_killed_starts_again_and_the_other_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, BUSY, BUSY) as keeper:
        until(lambda: len(pids(output)) == 2)
        first, second = pids(output)
        os.kill(first, signal.SIGKILL)
        until(lambda: len(pids(output)) == 3)
        os.kill(second, 0)
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(60) == 0
    said = [line for line in output.read_text().split("\n") if line.startswith("hookviz:")]
    assert len(said) == 1
    assert f"(process {first}) was ended by SIGKILL and is started again" in said[0]


def test_what_ends_by_itself_ends_the_others_and_its_status_counts(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, BUSY, "import time; time.sleep(1); raise SystemExit(7)") as keeper:
        assert keeper.wait(60) == 7
    text = output.read_text()
    assert "started again" not in text
    assert text.count("finished") == text.count("up ")


def test_what_is_killed_again_and_again_is_given_up(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, KILLED) as keeper:
        assert keeper.wait(60) == 1
    assert output.read_text().count("is started again") == 5
    assert output.read_text().count("once too often") == 1


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, STUBBORN, patience=0.5) as keeper:
        until(lambda: len(pids(output)) == 1)
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(60) == 0
    assert "did not end and is killed" in output.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(pids(output)[0], 0)


def test_run_serves_the_app_and_passes_its_end_on() -> None:
    command = [sys.executable, "-m", "hookviz", "run", "--port", "PORT", "--address", "127.0.0.1"]
    with serve(command=command) as address:
        with urllib.request.urlopen(address, timeout=5) as page:
            assert page.status == 200
            assert b"Streamlit" in page.read()
        own = address.pid()
        (server,) = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        os.kill(own, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while Path(f"/proc/{server}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert address.errors() == []


def test_several_processes_without_a_proxy_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    said = mistake("run", "--processes", 2)
    assert "Caddy" in said
    assert "Without --processes one server runs alone" in said


STREAMLIT = """
import importlib, json, os, sys
if __name__ == "__main__":
    import nets.small
    names = "MODEL", "INDEX", "ATLAS", "LESSONS"
    given = [os.environ["HOOKVIZ_" + name] for name in names]
    print(json.dumps([sys.argv, nets.small.__file__, *given]))
    sys.exit(7)
path = sys.path[:]
sys.path[:] = [each for each in path if os.path.abspath(each or ".") != os.getcwd()]
del sys.modules["streamlit"]
importlib.import_module("streamlit")
sys.path[:] = path
"""
"""Says what it was started with, and ends; imported, by who reads lessons, it is Streamlit."""


@pytest.mark.by_day
def test_whatever_is_chosen_reaches_the_server(tmp_path: Path) -> None:
    model = "nets.small:make"
    for file, text in {
        "nets/__init__.py": "",
        "nets/small.py": "from torch import nn\ndef make(): return nn.Conv2d(3, 2, 3)",
        "streamlit.py": STREAMLIT,
        "mine/01-my-lesson.md": "---\ntitle: Mine\n---\n# Step\nText.\n",
    }.items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    made([[1, 2]]).save(tmp_path / "index.parquet")
    (tmp_path / "one.png").write_bytes(encoded(picture(), "PNG"))
    for name in ("a.atlas", "b.atlas"):
        hookviz.make_atlas(as_model(Tiny()), [tmp_path / "one.png"], tmp_path / name)
    run = process(
        *("run", "--port", 8602, "--model", model, "--index", "index.parquet"),
        *("--atlas", "a.atlas", "--atlas", tmp_path / "b.atlas", "--lessons", "mine"),
        cwd=tmp_path,
        environment={"PYTHONSAFEPATH": "1"},  # with it Python itself does not look in this folder
    )
    assert run.returncode == 7, run.stderr  # the server's own
    arguments, found, named, index, atlases, lessons = json.loads(run.stdout)
    assert " ".join(arguments).count("--server.port 8602 --server.address localhost") == 1
    assert found == str(tmp_path / "nets" / "small.py")
    assert (named, index) == (model, str(tmp_path / "index.parquet"))
    assert atlases.split(os.pathsep) == [str(tmp_path / name) for name in ("a.atlas", "b.atlas")]
    assert lessons == str(tmp_path / "mine")


def test_what_cannot_be_read_is_told_before_the_server_starts(tmp_path: Path) -> None:
    (tmp_path / "index.parquet").write_bytes(b"PAR1")
    assert "damaged" in mistake("run", "--index", tmp_path / "index.parquet")
    (tmp_path / "a.atlas").mkdir()
    (tmp_path / "a.atlas" / "atlas.json").write_text("{}")
    assert "a.atlas" in mistake("run", "--atlas", tmp_path / "a.atlas")
    lesson = tmp_path / "mine" / "01-my-lesson.md"
    lesson.parent.mkdir()
    lesson.write_text("---\ntitle: Mine\n---\n# Step\n\n```live pixel\n```\n")
    said = mistake("run", "--lessons", tmp_path / "mine")
    assert "01-my-lesson.md, line 6: There is no live part called 'pixel'." in said
    assert "Did you mean 'pixels'?" in said
    assert "no folder" in mistake("run", "--lessons", tmp_path / "none")


@pytest.mark.by_day
def test_a_repository_of_hugging_face_reaches_the_server_or_is_refused_at_once(
    tmp_path: Path,
) -> None:
    save(vit(), tmp_path / "vit")
    (tmp_path / "streamlit.py").write_text('import os; print(os.environ["HOOKVIZ_MODEL"])')
    run = process("run", "--model", "hf:./vit", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "hf:./vit\n"), run.stderr
    assert "names no folder that is there" in mistake("run", "--model", "hf:./none")


CODE = """
import os, sys
print("code:", os.environ.get("HOOKVIZ_CODE"), os.environ.get("HOOKVIZ_HUGGING_FACE"))
sys.exit(7)
"""


@pytest.mark.parametrize(
    ("address", "variables", "code_and_cache"),
    [
        ("localhost", {}, "1 1"),
        ("0.0.0.0", {}, "None None"),  # noqa: S104
        ("localhost", {"HOOKVIZ_CODE": "0"}, "0 1"),
        ("localhost", {"HOOKVIZ_HOSTS": "cnn.example.org"}, "None None"),
        ("localhost", {"HOOKVIZ_CLASS_CODE": "a secret"}, "None None"),
        ("localhost", {"HOOKVIZ_LOGIN": "1"}, "None None"),
    ],
)
def test_lines_of_ones_own_run_where_nobody_else_can_come(
    address: str,
    variables: dict[str, str],
    code_and_cache: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "streamlit.py").write_text(CODE)
    done = process(*("run", "--address", address), cwd=tmp_path, environment=variables)
    assert f"code: {code_and_cache}\n" in done.stdout


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("nets", "package.module:factory"),
        ("nets:make()", "package.module:factory"),
        ("a/b.py:make", "package.module:factory"),
        ("my_network:make", "Did you mean 'my_networks'?"),
        ("nowhere.nets:make", "no module 'nowhere.nets'"),
        ("broken_nets.a:make", "division by zero"),
        ("ending_nets:make", "status 7"),
        ("my_networks:make", "no data"),
    ],
)
def test_a_network_that_cannot_be_had_is_one_line_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("broken_nets").mkdir()
    Path("broken_nets/__init__.py").write_text("1 / 0")
    Path("ending_nets.py").write_text("import os; os._exit(7)")
    Path("my_networks.py").write_text("def make(): raise ValueError('no\\ndata')")
    assert reason in mistake("run", "--model", model)
