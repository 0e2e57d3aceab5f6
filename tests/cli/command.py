"""The command line as a person uses it, in this process or in one of its own."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from click.testing import CliRunner, Result

from hookviz.cli.main import main
from scripts.children import child
from tests.pictures import picture

ROOT = Path(__file__).parent.parent.parent


def invoke(*arguments: object) -> Result:
    """What ``hookviz …`` prints and how it ends; an error of our own is raised."""
    return CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)


def output_of(*arguments: object) -> str:
    """Standard output of a command that works and says nothing else."""
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def mistake(*arguments: object) -> str:
    """The one line on standard error of a command that ends in status 2."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("hookviz: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def process(
    *arguments: object, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """``python -m hookviz …`` in a process of its own, from any folder."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    added = dict(environment or {})
    paths = [*filter(None, [added.pop("PYTHONPATH", None)]), *paths]
    return subprocess.run(
        [sys.executable, "-m", "hookviz", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **added},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=120,
    )


def in_terminal(
    *arguments: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """``python -m hookviz …`` whose standard error is a terminal."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "hookviz", *map(str, arguments)]
    with child(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=its,
        encoding="utf-8",
    ) as run:
        os.close(its)
        shown = b""
        with suppress(OSError):  # Linux ends a terminal that nobody holds any more with EIO
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        stdout, _ = run.communicate(timeout=60)
    return subprocess.CompletedProcess(command, run.returncode, stdout, shown.decode())


def save_pictures(folder: Path, *names: str) -> list[Path]:
    """Small pictures, each another one, in a folder that is made."""
    paths = [folder / name for name in names]
    for seed, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(seed).save(path)
    return paths
