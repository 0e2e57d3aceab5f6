"""Start the server warm, set its limits, and log errors of our own."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from types import FrameType
from typing import Any

import streamlit as st
import torch

from hookviz.capturing import engine
from hookviz.drawing.grid import make_grid
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.models import catalog, timm_models, user_models
from hookviz.reader import wall
from hookviz.serving import capacity, logs
from hookviz.serving.shutdown import shutdown
from hookviz.settings import host_names, settings
from hookviz.ui.serving import (
    class_route,
    deep_health,
    explorer_route,
    go_route,
    live_route,
    resources,
)
from hookviz.ui.state import ModelChoice
from hookviz.ui.streamlit_internals import (
    expect_a_server,
    forget_ended_sessions,
    keep_uploads_in_memory,
    send_runs_whole,
    set_option,
)

ROUTES = [
    deep_health.route(),
    explorer_route.route(),
    live_route.route(),
    go_route.route(),
    class_route.route(),
]
"""What the server answers beside the page."""

_FIRST_PAGE = 5.0  # seconds
_LOOKS_FOR_ENDED = 20.0  # seconds between two of them

_log = logging.getLogger("hookviz")


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Prepare a process that does nothing but serve; its garbage is collected between clicks."""
    allow_open_files()
    async with guest_lifespan(app):
        with capacity.garbage_collector().running(), shutdown_begins_with_the_signal():
            yield


def allow_open_files() -> None:
    """Open as many files at once as the system lets this process: a visitor takes three."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS says there is no limit, and takes none
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def shutdown_begins_with_the_signal() -> Iterator[None]:
    """Have `shutdown` begin, in the block, as soon as the process is told to end.

    The server tells so by its lifespan only after all answers and connections have ended.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def end(number: int, frame: FrameType | None) -> None:
        shutdown().has_begun = True
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    if threading.current_thread() is not threading.main_thread():  # where no signal comes
        yield
        return
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is end:
                signal.signal(number, handler)


@asynccontextmanager
async def guest_lifespan(_app: Any) -> AsyncIterator[None]:
    """Load what the first visitor will see, and the starter's own model, before anybody comes.

    The first pass and the first picture of a process take half a second longer than all later
    ones, while libraries set themselves up. For a process that has other things to do as well.
    """
    logs.set_up(settings().log)
    expect_a_server()
    keep_uploads_in_memory()
    send_runs_whole()
    limit_hosts()
    with ExitStack() as open_ports:
        open_ports.callback(wall.take_down)
        await asyncio.gather(asyncio.to_thread(wall.put_up), asyncio.to_thread(warm_up))
        metrics = capacity.metrics()
        if metrics is not None:
            chosen = settings()
            open_ports.enter_context(metrics.served(chosen.metrics_address, chosen.metrics_port))
        plan = capacity.run_plan()
        logs.event("started", runs=plan.runs, threads=plan.threads)
        tasks = [asyncio.create_task(each()) for each in (_load_rest, _free_what_ended)]
        yield
        for task in tasks:
            task.cancel()


async def _free_what_ended() -> None:
    """Free what sessions kept that are over, also where nobody comes or goes."""
    while True:
        await asyncio.sleep(_LOOKS_FOR_ENDED)
        forget_ended_sessions()


async def _load_rest() -> None:
    """List timm's models in a process apart, once the first page has had its time."""
    await asyncio.sleep(_FIRST_PAGE)
    # No thread of the loop's: a server that is told to end would wait for it.
    threading.Thread(target=_list_timm, name="timm", daemon=True).start()


def _list_timm() -> None:
    timm_models.list_apart()
    catalog.list_models()


def share_cores() -> None:
    """Give each run its threads, so that runs side by side do not fight over the cores.

    For a process that does nothing but serve: torch's threads belong to the whole of it.

    What OMP_NUM_THREADS says stays, unless HOOKVIZ_THREADS was set too.
    """
    if settings().threads or "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(capacity.run_plan().threads)  # for all threads that begin after this


def limit_hosts() -> None:
    """Refuse the page's connection to whoever opened it under a name not in HOOKVIZ_HOSTS.

    Else a page of another site could point its own name at this address, and be the same site.
    Probes ask by address and open no such connection, so they are not refused. Where the setting is
    empty, Streamlit's own ``server.allowedHosts`` stays.
    """
    names = host_names(settings().hosts)
    if names:
        set_option("server.allowedHosts", names)


def warm_up() -> None:
    """Do everything that the first page does, once; what the sample gave is kept for visitors."""
    first = ModelChoice(catalog.first_model(), "pretrained")
    with resources.use_model(first) as model:
        capture = engine.capture(model, samples()[0].path, cache=capacity.sample_activations())
        receptive_fields(model, capture.model_input)
    make_grid(next(iter(capture.values()))).png()
    catalog.described_models()
    user_models.add_from_settings()


def on_script_error(error: Exception) -> bool:
    """Log the traceback and show a short message: no traceback reaches the page."""
    _log.error("The page failed", exc_info=error)
    metrics = capacity.metrics()
    if metrics is not None:
        metrics.failed()
    st.error(
        say(
            "Something went wrong on our side, and it has been logged. Your image and "
            "choices are still here: try again, or choose another model or layer."
        ),
        icon=":material/error:",
    )
    return True
