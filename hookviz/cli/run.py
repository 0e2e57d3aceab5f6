"""``hookviz run``: start the app, as one server or as several behind the proxy Caddy.

A server that a signal ended is started again, and all processes end together. On Linux they end too
where this one is killed with SIGKILL. The proxy's rules are those of compose.yaml, from the same
Caddyfile; docs/adr/0006 says why it is Caddy.
"""

import ctypes
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from hookviz.classroom.codes import LETTERS, letter_of
from hookviz.cli.terminal import print_error
from hookviz.errors import HookVizError, ModelError, nearest_names, shorten
from hookviz.machine.installed import check_app
from hookviz.paths import path_of
from hookviz.serving.rate_limiter import RateLimiter
from hookviz.serving.short_links import start_of
from hookviz.settings import is_own_address, settings

_POLL = 0.1  # seconds between two looks at which still run
_PAUSE = 1.0  # seconds from an end to the next start
_MOST, _WITHIN = 5, 60.0  # more ends than this in these seconds, and it is given up
_PATIENCE = 8.0  # seconds from SIGTERM to SIGKILL

_SIGNAL_OF_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

_END_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
            if hasattr(signal, name)]  # fmt: skip

_BY_CODE = """
@class{number} expression `{{query.follow}}.upperAscii().startsWith("{letter}")`
reverse_proxy @class{number} 127.0.0.1:{port} {{
	lb_policy cookie hookviz_copy
	lb_try_duration 10s
}}
@short{number} path /hookviz/go/{start}*
reverse_proxy @short{number} 127.0.0.1:{port}
"""
"""A class's link takes whoever opens it to its server, and the cookie keeps them there. A short one
is answered by the server that made it, and nobody moves."""

_HERE = Path(__file__).parent
_RULES = (_HERE / "Caddyfile", _HERE.parent.parent / "deploy" / "Caddyfile")
"""In the wheel, or in a checkout."""

_PACKAGE = Path(__file__).parent.parent
_APP = next(
    file for file in (_PACKAGE / "ui" / "app.py", _PACKAGE.parent / "app.py") if file.is_file()
)
"""The app with its configuration beside it: in the wheel, or at the top of a checkout."""

_FILES = (".pt2", ".ts", ".torchscript", ".ptl")  # the server says what is wrong with others
_BUILD = """
import sys
sys.path.append(sys.argv[2])
from hookviz.errors import HookVizError
from hookviz.models import user_models
try:
    user_models.build(sys.argv[1])
except HookVizError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""
"""Makes the network once, in a process that ends before the server begins."""

_FORM = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):[^\W\d]\w*")


@dataclass(eq=False)
class Process:
    """Command that is to run all the time.

    Attributes:
        name: what a person calls it, such as "Server 2".
        command: the program and its arguments.
        environment: all of its variables.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    _running: "subprocess.Popen[bytes] | None" = None
    _start_at: float = 0.0
    _ends: RateLimiter = field(default_factory=lambda: RateLimiter(_MOST, seconds=_WITHIN))

    def keep_up(self) -> int | None:
        """Start it where that is due; return its status where it is not to be started again.

        A signal ended it: that is an accident (the kernel's for want of memory, say), and it is
        started again after a pause, unless that happens too often. Where it ended with a status of
        its own it has said why, and would say it again.
        """
        now = time.monotonic()
        if self._running is None:
            if now >= self._start_at:
                self._running = subprocess.Popen(  # noqa: S603 - our own, and no shell
                    self.command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    # This process has one thread, so what the fork copies is in order.
                    preexec_fn=partial(_end_with_parent, os.getpid()) if _libc else None,  # noqa: PLW1509
                )
            return None
        status = self._running.poll()
        if status is None:
            return None
        if status >= 0:
            return status
        ending = f"{self.name} (process {self._running.pid}) was ended by {_name(-status)}"
        if self._ends.is_exceeded():
            print_error(f"{ending}, once too often within a minute.")
            return 1
        print_error(f"{ending} and is started again.")
        self._ends.count()
        self._running, self._start_at = None, now + _PAUSE
        return None

    def end(self) -> None:
        """Send it SIGTERM, if it runs."""
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()

    def wait(self, until: float) -> None:
        """Wait until it has ended, and kill it at time `until` of `time.monotonic`."""
        if self._running is None:
            return
        try:
            self._running.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            print_error(f"{self.name} (process {self._running.pid}) did not end and is killed.")
            self._running.kill()
            self._running.wait()


def keep_up(processes: Sequence[Process]) -> int:
    """Run all of them until SIGINT or SIGTERM comes, or one can't go on; then end all.

    Returns:
        0 where a signal asked for the end, or else the status of the one that could not go on.
    """
    with _end_signals() as received:
        status = None
        try:
            while not received and status is None:
                for process in processes:
                    status = process.keep_up()
                    # Whoever ends a whole group has ended this one first.
                    if received or status is not None:
                        break
                else:
                    time.sleep(_POLL)
        finally:
            _end(processes)
    return 0 if received or status is None else status


def _end_with_parent(parent: int) -> None:
    """Have Linux send this new process SIGTERM when its parent ends, even by SIGKILL."""
    assert _libc is not None
    _libc.prctl(_SIGNAL_OF_PARENT, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before this was said
        os._exit(0)


def _end(processes: Sequence[Process]) -> None:
    until = time.monotonic() + _PATIENCE
    for process in processes:
        process.end()
    for process in processes:
        process.wait(until)


@contextmanager
def _end_signals() -> Iterator[list[int]]:
    """Collect the signals that ask for the end during the block, in a list that grows."""
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: received.append(number))
        for number in _END_SIGNALS
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _proxy(address: str, port: int, servers: Sequence[int]) -> Process:
    """Return the process of a proxy before servers on these ports of this machine.

    Raises:
        HookVizError: there is no Caddy on this machine.
    """
    caddy = shutil.which("caddy")
    rules = next(filter(Path.is_file, _RULES), None)
    if caddy is None or rules is None:
        raise HookVizError(
            "Several processes need the proxy Caddy before them, and there is no caddy on the "
            "PATH (Debian, Ubuntu: apt install caddy; macOS: brew install caddy). Without "
            "--processes one server runs alone."
        )
    largest = max(settings().upload_mb, settings().checkpoint_mb)
    environment = {
        "SITE": f"http://:{port}",
        "LISTEN": f"bind {address}",
        "COPIES": "listed",
        "SERVERS": " ".join(f"127.0.0.1:{own}" for own in servers),
        "BY_CODE": "".join(map(_by_code, range(len(servers)), servers)),
        "UPLOAD_MB": str(largest),
        "PROXY_LOG": "WARN",
    }
    command = [caddy, "run", "--config", str(rules), "--adapter", "caddyfile"]
    return Process("The proxy", command, {**os.environ, **environment})


def _by_code(number: int, port: int) -> str:
    """Return the rules by which codes that a server made lead to it."""
    return _BY_CODE.format(
        number=number, port=port, letter=letter_of(number), start=start_of(number)
    )


@click.command()
@click.option("--port", default=8501, show_default=True, help="Where to listen.")
@click.option("--address", default="localhost", show_default=True, help="On which interface.")
@click.option(
    "--model",
    metavar="PACKAGE.MODULE:FACTORY",
    help="A network of your own to show, or hf:OWNER/NAME of Hugging Face's hub.",
)
@click.option("--index", metavar="FILE", help="An index of `hookviz features` to look through.")
@click.option(
    "--atlas", metavar="FILE", multiple=True, help="An atlas to show with its network; several do."
)
@click.option("--lessons", metavar="FOLDER", help="Lessons of your own to show after ours.")
@click.option("--device", help="What networks compute on: cpu, cuda, cuda:1, mps or auto.")
@click.option(
    "--processes",
    type=click.IntRange(1, len(LETTERS)),  # each has one for the codes of its classes
    default=1,
    show_default=True,
    envvar="HOOKVIZ_PROCESSES",
    help="How many servers, behind the proxy Caddy if more than one.",
)
def run(
    *,
    port: int,
    address: str,
    model: str | None,
    index: str | None,
    atlas: tuple[str, ...],
    lessons: str | None,
    device: str | None,
    processes: int,
) -> None:
    """Start the app, by default at http://localhost:8501.

    With --model the app also lists what the named function returns: a torch.nn.Module, or what
    hookviz.wrap gives. It is looked for in the current directory first. A file that
    torch.export.save wrote (.pt2) will do as well; it is code, so name only one that you trust.
    So will hf:OWNER/NAME, a repository of Hugging Face's hub, or hf: and the path of such a folder.

    With --index the lens Embedding shows everybody what is like an image in that index, with the
    pictures that lie in the folder of the file.

    With --atlas everybody sees what excites a channel of the network that the atlas is of.

    On an address of this machine alone, the default, the scripts of lessons can be edited and run
    by whoever opens the page there. HOOKVIZ_CODE=0 keeps it from that. The page also lists the
    models in this machine's Hugging Face cache there, which HOOKVIZ_HUGGING_FACE=0 turns off.

    With --device cuda the networks compute on a GPU; where there is none, on the CPU, and the log
    says so.

    With --lessons everybody can learn with the lessons in that folder, a Markdown file each.

    A server that is killed is started again. SIGTERM and Ctrl-C end all of it, with exit status 0.
    """
    check_app()
    environment = dict(os.environ)
    if model:
        folder = str(Path.cwd())
        if model.startswith("hf:"):
            pass  # the server runs in this directory, too
        elif Path(model).suffix in _FILES:
            model = str(Path(model).expanduser().absolute())
            if not Path(model).is_file():
                raise ModelError(f"There is no file {shorten(model)}.")
        else:
            _check_module(model, folder)
        paths = [folder, *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        _build_once(model, environment)
        environment["HOOKVIZ_MODEL"] = model
    chosen = {
        "HOOKVIZ_INDEX": index and str(_checked_index(index)),
        "HOOKVIZ_ATLAS": os.pathsep.join(map(_checked_atlas, atlas)),
        "HOOKVIZ_LESSONS": lessons and _checked_lessons(lessons),
        "HOOKVIZ_DEVICE": device,
    }
    environment |= {name: value for name, value in chosen.items() if value}
    if processes == 1 and _is_for_one_person(address, environment):
        environment.setdefault("HOOKVIZ_CODE", "1")
        environment.setdefault("HOOKVIZ_HUGGING_FACE", "1")
    if processes == 1:
        started = [_server("The server", address, port, environment)]
    else:
        started = _servers(processes, address, port, environment)
        click.echo(f"{processes} servers behind Caddy at http://{address}:{port}", err=True)
    sys.exit(keep_up(started))


def _is_for_one_person(address: str, environment: Mapping[str, str]) -> bool:
    """Return whether nobody else can come: an address of this machine, and no sign of hosting."""
    hosting = ("HOOKVIZ_HOSTS", "HOOKVIZ_CLASS_CODE", "HOOKVIZ_LOGIN")
    return is_own_address(address) and not any(environment.get(name) for name in hosting)


def _server(name: str, address: str, port: int, environment: Mapping[str, str]) -> Process:
    options = {"server.port": str(port), "server.address": address}
    flags = [part for option, value in options.items() for part in (f"--{option}", value)]
    command = [sys.executable, "-m", "streamlit", "run", str(_APP), *flags]
    return Process(name, command, environment)


def _servers(count: int, address: str, port: int, environment: Mapping[str, str]) -> list[Process]:
    """Return `count` servers on free ports of this machine, and the proxy before them.

    Raises:
        HookVizError: there is no proxy on this machine.
    """
    shared = {
        **environment,
        "HOOKVIZ_PROCESSES": str(count),
        "STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true",  # which names a server's own port
    }
    shared.setdefault("HOOKVIZ_PROXIES", "127.0.0.1")
    # A login at one server counts at the others. By the environment, which nobody else can read.
    shared.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", secrets.token_hex(32))
    ports = _free_ports(count)
    servers = []
    for number, own in enumerate(ports):
        metrics = int(environment.get("HOOKVIZ_METRICS_PORT") or 0)
        variables = {"HOOKVIZ_SERVER": str(number)}
        if metrics:
            variables["HOOKVIZ_METRICS_PORT"] = str(metrics + number)
        name = f"Server {number + 1} of {count}"
        servers.append(_server(name, "127.0.0.1", own, {**shared, **variables}))
    return [*servers, _proxy(address, port, ports)]


def _free_ports(count: int) -> list[int]:
    """Find ports of this machine on which nobody listens at the moment, all different."""
    with ExitStack() as probes:
        taken = [probes.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(probe.getsockname()[1]) for probe in taken]


def _checked_index(index: str) -> Path:
    """Return the absolute path of an index that can be read.

    Raises:
        HookVizError: it is none; the page would say so at the first visit.
    """
    from hookviz.capturing import feature_files  # noqa: PLC0415 - needs pyarrow, few have an index

    path = path_of(index).absolute()
    feature_files.read(path)
    return path


def _checked_atlas(atlas: str) -> str:
    """Return the absolute path of an atlas that can be read.

    Raises:
        HookVizError: it is none; else the page would leave it out without a word.
    """
    from hookviz.atlas.files import load_atlas  # noqa: PLC0415 - needs torch, few have an atlas

    path = path_of(atlas).absolute()
    load_atlas(path)
    return str(path)


def _checked_lessons(folder: str) -> str:
    """Return the absolute path of lessons all of which can be read.

    Raises:
        HookVizError: one can't, with its file and line; the page would say so to the class.
    """
    from hookviz.ui.lessons.catalog import read_lessons  # noqa: PLC0415 - needs torch, few have lessons

    path = str(path_of(folder).absolute())
    read_lessons(path)
    return path


def _check_module(model: str, folder: str) -> None:
    """Check that `model` is PACKAGE.MODULE:FACTORY and its module is found from `folder`.

    It is only looked up, without torch, so that a typing mistake is told at once.

    Raises:
        ModelError: it has another form, or there is no such module.
    """
    form = _FORM.fullmatch(model)
    if not form:
        raise ModelError(
            f"{shorten(model)!r} is not of the form package.module:factory, such as nets:my_model."
        )
    module = form[1]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # the package that it would be in is not there
        spec = None
    except Exception as error:  # the package's own code runs here and may raise anything
        reason = shorten(str(error), 200) or type(error).__name__
        raise ModelError(f"The package of {module!r} can't be imported: {reason}") from error
    if spec is None:
        near = nearest_names(module, [file.stem for file in Path(folder).glob("*.py")])
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "None is like it."
        raise ModelError(f"There is no module {module!r}; it was looked for in {folder!r}. {hint}")


def _build_once(model: str, environment: Mapping[str, str]) -> None:
    """Build the network once in another process, and raise where that fails.

    The server would end with the traceback of its own start. Another process makes it here, so that
    neither its memory nor what its module does at import stays with this one.

    Raises:
        ModelError: its module or its factory fails.
    """
    command = [sys.executable, "-c", _BUILD, model, str(_PACKAGE.parent)]
    done = subprocess.run(  # noqa: S603 - our own, and no shell
        command,
        env=environment,
        check=False,
        encoding="utf-8",
        errors="replace",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ModelError(last or f"{model} ends Python with status {done.returncode}.")
