"""``hookviz run``: start the app."""

import importlib.util
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from hookviz.classroom.codes import LETTERS
from hookviz.cli.processes import Process, keep_up
from hookviz.errors import ModelError, nearest_names, shorten
from hookviz.machine.installed import check_app
from hookviz.paths import path_of
from hookviz.settings import is_own_address

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
    if index:
        environment["HOOKVIZ_INDEX"] = str(_checked_index(index))
    if atlas:
        environment["HOOKVIZ_ATLAS"] = os.pathsep.join(map(_checked_atlas, atlas))
    if lessons:
        environment["HOOKVIZ_LESSONS"] = _checked_lessons(lessons)
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
    from hookviz.cli.proxy import proxy  # noqa: PLC0415 - one server alone reads no settings here

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
    return [*servers, proxy(address, port, ports)]


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
    from hookviz.atlas.reading import read_atlas  # noqa: PLC0415 - needs torch, few have an atlas

    path = path_of(atlas).absolute()
    read_atlas(path)
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
