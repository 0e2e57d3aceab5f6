"""A real JupyterLab on loopback, and a notebook in it as a person has it in a browser."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from scripts.children import child
from scripts.servers import ROOT, free_port, written

_KEY = secrets.token_hex(8)  # of whoever may ask the server
# Neither news nor updates are asked for, and cells that are out of sight are drawn, too.
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}


class Jupyter:
    """A JupyterLab that serves a folder.

    Attributes:
        folder: where its notebooks are.
    """

    def __init__(self, address: str, folder: Path, settings: Path) -> None:
        self._address, self.folder, self._settings = address, folder, settings

    @contextmanager
    def setting(self, name: str, setting: Mapping[str, Any]) -> Iterator[None]:
        """Have a setting of JupyterLab's for windows that are opened in the block."""
        file = _set(self._settings, name, setting)
        yield
        file.unlink()

    def write(self, name: str, *cells: str) -> Path:
        """Write a notebook of code cells, one after the other, without a single output."""
        code: dict[str, Any] = {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        book = {
            "cells": [
                {**code, "id": f"cell-{at}", "source": each} for at, each in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        path = self.folder / name
        path.write_text(json.dumps(book))
        return path

    def url(self, name: str, *, mode: str = "doc") -> str:
        """Where a notebook is opened: alone in the window, or with all of the ``lab`` around."""
        return f"{self._address}/{mode}/tree/{name}?token={_KEY}&reset"

    def open(self, page: Page, name: str, *cells: str) -> "Notebook":
        """Write and open a notebook, with the kernel ready to run that all of them share."""
        self.write(name, *cells)
        sessions = json.loads(self._asked("sessions"))
        kernel = {"id": sessions[0]["kernel"]["id"]} if sessions else {"name": "python3"}
        self._asked("sessions", {"path": name, "name": name, "type": "notebook", "kernel": kernel})
        page.goto(self.url(name))
        notebook = Notebook(page)
        notebook.ready()
        return notebook

    def end_kernels(self) -> None:
        """End every kernel, so that a notebook is opened without one."""
        for kernel in json.loads(self._asked("kernels")):
            self._asked(f"kernels/{kernel['id']}", method="DELETE")

    def _asked(self, path: str, told: object = None, *, method: str | None = None) -> bytes:
        request = urllib.request.Request(
            f"{self._address}/api/{path}",
            None if told is None else json.dumps(told).encode(),
            headers={"Authorization": f"token {_KEY}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())


class Notebook:
    """A notebook in a window; its cells are numbered from 0."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def ready(self) -> None:
        """Wait until the kernel can run a cell."""
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
            "?.status === 'idle'"
        )

    def run(self, cell: int) -> None:
        """Run a cell, and wait for its end."""
        self.start(cell)
        self.page.wait_for_function("() => window.hookvizRan")

    def start(self, cell: int) -> None:
        """Run a cell, and wait for nothing."""
        self.page.evaluate(
            """cell => {
              const { commands, shell } = window.jupyterapp;
              shell.currentWidget.content.activeCellIndex = cell;
              window.hookvizRan = false;
              commands.execute("notebook:run-cell").then(() => { window.hookvizRan = true; });
            }""",
            cell,
        )

    def save(self) -> None:
        """Save it as it is."""
        self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")

    def restart(self) -> None:
        """Start the kernel anew, and wait until it is ready."""
        self.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
        self.ready()

    def theme(self, name: str) -> None:
        """Change the colours of JupyterLab."""
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name
        )

    def cell(self, cell: int) -> Locator:
        """A cell with its outputs."""
        return self.page.locator(".jp-Notebook-cell").nth(cell)

    def text(self, cell: int) -> str:
        """What a cell wrote."""
        return "\n".join(self.cell(cell).locator(".jp-OutputArea-output pre").all_text_contents())


@contextmanager
def jupyter_lab(folder: Path) -> Iterator[Jupyter]:
    """Serve a folder for the block; show the output if it does not come up."""
    port, own = free_port(), folder / ".own"
    for name, setting in _SETTINGS.items():
        _set(own / "settings", name, setting)
    (folder / "notebooks").mkdir()
    command: Sequence[str] = (
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={_KEY}", f"--ServerApp.root_dir={folder / 'notebooks'}"),
        *("--LabApp.extension_manager=readonly", "--ServerApp.allow_root=True"),
    )
    environment: dict[str, Any] = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(own / "ipython"),
        **{f"JUPYTER_{name}_DIR": str(own / name) for name in ("CONFIG", "DATA", "RUNTIME")},
        "JUPYTERLAB_SETTINGS_DIR": str(own / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(own / "workspaces"),
    }
    address = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        child(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT) as lab,
    ):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and lab.poll() is None:
            try:
                urllib.request.urlopen(f"{address}/api", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        else:
            raise RuntimeError(f"JupyterLab did not start:\n{written(output)[-3000:]}")
        yield Jupyter(address, folder / "notebooks", own / "settings")


def _set(settings: Path, name: str, setting: Mapping[str, Any]) -> Path:
    file = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(setting))
    return file
