"""Start the server warm, set its limits, check its health deeply, and log errors of our own."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from types import FrameType
from typing import Any

import streamlit as st
import torch
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hookviz.capturing import engine
from hookviz.drawing.grid import make_grid
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.models import catalog, timm_models, user_models
from hookviz.reader import wall
from hookviz.serving import capacity, logs
from hookviz.serving.capacity import shutdown
from hookviz.settings import host_names, settings
from hookviz.ui.serving import (
    class_route,
    explorer_route,
    go_route,
    live_route,
    resources,
)
from hookviz.ui.serving.visitors import asker
from hookviz.ui.state import ModelChoice
from hookviz.ui.streamlit_internals import (
    expect_a_server,
    forget_ended_sessions,
    keep_uploads_in_memory,
    page_runs_without_error,
    send_runs_whole,
    set_option,
)

HEALTH_PATH = "/health/deep"
_HEALTH_FRESH_S = 10.0  # seconds for which an answer holds: asking often costs nothing
_CHECK_TIMEOUT_S = 9.0  # seconds for one check; whoever asks gives up a little later

Check = Callable[[], Awaitable[str]]
_FIRST_PAGE = 5.0  # seconds
_LOOKS_FOR_ENDED = 20.0  # seconds between two of them

_log = logging.getLogger("hookviz")


class Health:
    """Health endpoint that keeps its last answer, and runs at most one check at a time."""

    def __init__(self, checks: dict[str, Check], fresh: float = _HEALTH_FRESH_S) -> None:
        """Take the checks by name, each of which gives ``"ok"`` or another word, or raises."""
        self._checks = checks
        self._fresh = fresh
        self._lock = asyncio.Lock()
        self._words: dict[str, str] = {}
        self._at = -float("inf")

    async def answer(self, _request: Request | None = None) -> JSONResponse:
        """Answer 200 where everything works, else 503, with a word about each part."""
        async with self._lock:
            if time.monotonic() - self._at >= self._fresh:
                words = await asyncio.gather(*map(_check_result, self._checks.values()))
                self._words = dict(zip(self._checks, words, strict=True))
                self._at = time.monotonic()
        is_well = all(word in ("ok", "busy") for word in self._words.values())
        return JSONResponse(
            {"status": "ok" if is_well else "failed", **self._words},
            status_code=200 if is_well else 503,
            headers={"Cache-Control": "no-store"},
        )


async def _check_result(check: Check) -> str:
    try:
        return await asyncio.wait_for(check(), _CHECK_TIMEOUT_S)
    except TimeoutError:
        return "timeout"
    except Exception:  # noqa: BLE001 - whatever it is, it is logged and the answer is 503
        _log.exception("A health check failed")
        return "error"


async def _check_script() -> str:
    """Run the page's script as a visitor's session would, which is closed again.

    Its own runs wait in the queue as anybody's. A queue that is longer than the patience of the
    check is no illness, and the script that waits in it has come far.
    """
    try:
        ran = await asyncio.wait_for(page_runs_without_error(), _CHECK_TIMEOUT_S - 1)
    except TimeoutError:
        if capacity.queue().waiting:
            return "busy"
        raise
    return "ok" if ran else "error"


async def check_engine() -> str:
    """Capture every conv layer of the model to start with, for a sample."""
    return await asyncio.to_thread(_check_engine)


def _check_engine() -> str:
    first = ModelChoice(catalog.first_model(), "pretrained")
    with resources.use_model(first) as model:
        captured = engine.capture(model, samples()[0].path)
    is_sound = captured.logits is not None and all(
        bool(torch.isfinite(activation.values).all()) and bool(activation.values.any())
        for activation in captured.values()
    )
    return "ok" if is_sound else "wrong numbers"


ROUTES = [
    Route(HEALTH_PATH, Health({"script": _check_script, "engine": check_engine}).answer),
    *explorer_route.routes(),
    live_route.route(),
    go_route.route(),
    class_route.route(),
]
"""What the server answers beside the page."""


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
    _limit_hosts()
    with ExitStack() as open_ports:
        open_ports.callback(wall.take_down)
        put_up = asyncio.to_thread(wall.put_up, asker)
        await asyncio.gather(put_up, asyncio.to_thread(warm_up))
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


def _limit_hosts() -> None:
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
