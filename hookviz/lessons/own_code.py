"""Run a learner's edited lines of a script apart, with limits of time and memory and a stop.

In a process and a folder of their own, with the user's own rights: it keeps mistakes from the
server, and nobody from the machine. So it is only for who started the server
(`hookviz.ui.serving.visitors`). The folder has the lesson's image and weights.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file

from hookviz import shallow_json
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scripts import weights_of
from hookviz.machine.memory import MEGABYTE
from hookviz.models.bundled import BUNDLED

_log = logging.getLogger(__name__)

_SECONDS = 20.0  # that the lines may take
_MEGABYTES = 2000  # that they may take beside the network
_START = 120.0  # seconds that torch and the network may take to be there
_LOOK = 0.05  # seconds between two looks
_LONGEST = 20_000  # letters of lines
_PROGRAM = Path(__file__).with_name("own_code_process.py")
_MARK = "HOOKVIZ_LINES"  # in the environment of all that lines start: the name of their folder
_MOST_BYTES = 64 * MEGABYTE  # of a file that comes back


@dataclass(frozen=True, eq=False, slots=True)
class OwnResult:
    """What came of lines that were run apart.

    Attributes:
        printed: their lines.
        fault: what went wrong, in a sentence; empty where nothing did.
        facts: numbers and words by their names at the end.
        pictures: maps ``(H, W)`` by their titles.
    """

    printed: tuple[str, ...] = ()
    fault: str = ""
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    pictures: Mapping[str, NDArray[np.float32]] = field(default_factory=dict, repr=False)


class OwnRun:
    """Lines that run, or have run. It ends by itself, at its limits at the latest."""

    def __init__(
        self,
        set_up: str,
        lines: str,
        fill: Callable[[Path], None],
        *,
        seconds: float = _SECONDS,
        megabytes: int = _MEGABYTES,
    ) -> None:
        """Start a process for the lines.

        Args:
            set_up: what is run before them, without their limits.
            lines: a person's own.
            fill: puts the files that the set-up reads into a folder.
            seconds: that the lines may take.
            megabytes: that they may take beyond what the set-up took.
        """
        self.lines = lines
        self._limits = seconds, megabytes
        self._ended, self._stopped = threading.Event(), threading.Event()
        self._result = OwnResult()
        self._worker = threading.Thread(target=self._run, args=(set_up, fill), daemon=True)
        self._worker.start()

    @property
    def result(self) -> OwnResult | None:
        """What came of it; None while it runs."""
        return self._result if self._ended.is_set() else None

    def stop(self) -> None:
        """End the process, and say that it was stopped."""
        self._stopped.set()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, at most so long, and return whether it has."""
        return self._ended.wait(seconds)

    def _run(self, set_up: str, fill: Callable[[Path], None]) -> None:
        try:
            with TemporaryDirectory(prefix="hookviz-lines-") as name:
                folder = Path(name)
                if len(self.lines) > _LONGEST:
                    self._result = OwnResult(fault=say("These lines are too long to be run."))
                    return
                fill(folder)
                folder.joinpath("set_up.py").write_text(set_up, "utf-8")
                folder.joinpath("lines.py").write_text(self.lines, "utf-8")
                self._result = self._apart(folder)
        except OSError as error:
            reason = error.strerror or str(error)
            self._result = OwnResult(
                fault=say("The files could not be written: {reason}", reason=reason)
            )
        except Exception:  # noqa: BLE001 - the thread has nobody else to tell
            _log.exception("Edited lines could not be run")
            self._result = OwnResult(fault=say("Something went wrong on our side; it was logged."))
        finally:
            self._ended.set()

    def _apart(self, folder: Path) -> OwnResult:
        command = [sys.executable, "-c", _PROGRAM.read_text("utf-8"), str(self._limits[1])]
        with subprocess.Popen(  # noqa: S603 - our own program, and no shell
            command,
            cwd=folder,
            env={**os.environ, _MARK: folder.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that what the lines start ends with them
        ) as process:
            try:
                ended = self._watch(process, folder)
            finally:
                _end(process, folder)
        return _read_result(folder, ended, process.returncode)

    def _watch(self, process: "subprocess.Popen[bytes]", folder: Path) -> str:
        """Wait for the end of the process, and return in a sentence why it had to be ended."""
        deadline, begun = time.monotonic() + _START, False
        while process.poll() is None:
            if self._stopped.wait(_LOOK):
                return say("It was stopped.")
            if not begun and folder.joinpath("begun").exists():
                deadline, begun = time.monotonic() + self._limits[0], True
            if time.monotonic() > deadline:
                return say(
                    "It was ended after {seconds} seconds: a loop without an end, perhaps?",
                    seconds=f"{self._limits[0]:.0f}",
                )
        return ""


def _end(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """End the process and all that it started; on Windows the process alone.

    What has left the process's group is found on Linux by the mark in its environment.
    """
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of zombies
        os.killpg(process.pid, signal.SIGKILL)
    mark = f"{_MARK}={folder.name}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has gone, or is another user's
            if mark in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)


def _read_result(folder: Path, ended: str, status: int) -> OwnResult:
    """Return what the process left in its folder; `ended` tells why it was ended, if it was."""
    printed = _lines(folder / "printed.txt")
    if ended:
        return OwnResult(printed, ended)
    file = folder / "result.json"
    if not file.is_file() or file.stat().st_size > _MOST_BYTES:
        return OwnResult(printed, say("Python itself ended, with status {status}.", status=status))
    try:
        result: dict[str, Any] = shallow_json.parse(file.read_bytes())
        pictures = {
            str(title): np.load(folder / f"{at}.npy", allow_pickle=False)
            for at, title in enumerate(result["pictures"])
        }
        return OwnResult(printed, _sentence(result["fault"]), dict(result["facts"]), pictures)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        fault = say("What came of the lines can't be read: they wrote over it, perhaps?")
        return OwnResult(printed, fault)


def _lines(file: Path) -> tuple[str, ...]:
    return tuple(file.read_text("utf-8", "replace").splitlines()) if file.is_file() else ()


def _sentence(fault: Mapping[str, Any] | None) -> str:
    """Return what went wrong as people read it: with the number of their own line."""
    if not fault:
        return ""
    if fault["kind"] == "memory":
        return say("There was not enough memory: it may take {size} MB.", size=_MEGABYTES)
    error = f"{fault['kind']}: {fault['said']}".removesuffix(": ")
    if fault["line"] is None:
        return say("The set-up failed: {error}", error=error)
    return say("Line {line}: {error}", line=fault["line"], error=error)


def files_of(scene: LessonScene) -> Callable[[Path], None]:
    """Return what puts the scene's image and weights into a folder, and holds no model in use."""
    image, name, weights = scene.image.pixels, Path(scene.image.name).name, weights_of(scene)
    shipped = BUNDLED[scene.model.name].weights_file if scene.model.name in BUNDLED else None
    model = scene.model

    def fill(folder: Path) -> None:
        with folder.joinpath(name).open("wb") as file:
            Image.fromarray(image).save(file, "PNG")  # pixel for pixel, whatever it is called
        if not weights:
            return
        to = folder / Path(weights).name
        if shipped is not None and shipped.name == weights:
            shutil.copyfile(shipped, to)
            return
        with private_replica(model) as network:
            state = network.state_dict()
            if to.suffix == ".safetensors":
                save_file({key: value.contiguous() for key, value in state.items()}, to)
            else:
                torch.save(state, to)

    return fill
