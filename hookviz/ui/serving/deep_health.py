"""Check the server's health deeply: run the page's script, and capture with the engine."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import torch
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hookviz.capturing import engine
from hookviz.images.samples import samples
from hookviz.models import catalog
from hookviz.serving import capacity
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice
from hookviz.ui.streamlit_internals import page_runs_without_error

_FRESH = 10.0  # seconds for which an answer holds: asking often costs nothing
_PATIENCE = 9.0  # seconds for one check; whoever asks gives up a little later

_log = logging.getLogger(__name__)
Check = Callable[[], Awaitable[str]]


class Health:
    """Health endpoint that keeps its last answer, and runs at most one check at a time."""

    def __init__(self, checks: dict[str, Check], fresh: float = _FRESH) -> None:
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
                words = await asyncio.gather(*map(_word, self._checks.values()))
                self._words = dict(zip(self._checks, words, strict=True))
                self._at = time.monotonic()
        is_well = all(word in ("ok", "busy") for word in self._words.values())
        return JSONResponse(
            {"status": "ok" if is_well else "failed", **self._words},
            status_code=200 if is_well else 503,
            headers={"Cache-Control": "no-store"},
        )


async def _word(check: Check) -> str:
    try:
        return await asyncio.wait_for(check(), _PATIENCE)
    except TimeoutError:
        return "timeout"
    except Exception:  # noqa: BLE001 - whatever it is, it is logged and the answer is 503
        _log.exception("A health check failed")
        return "error"


async def script() -> str:
    """Run the page's script as a visitor's session would, which is closed again.

    Its own runs wait in the queue as anybody's. A queue that is longer than the patience of the
    check is no illness, and the script that waits in it has come far.
    """
    try:
        ran = await asyncio.wait_for(page_runs_without_error(), _PATIENCE - 1)
    except TimeoutError:
        if capacity.queue().waiting:
            return "busy"
        raise
    return "ok" if ran else "error"


async def capture() -> str:
    """Capture every conv layer of the model to start with, for a sample."""
    return await asyncio.to_thread(_capture)


def _capture() -> str:
    first = ModelChoice(catalog.first_model(), "pretrained")
    with resources.use_model(first) as model:
        captured = engine.capture(model, samples()[0].path)
    is_sound = captured.logits is not None and all(
        bool(torch.isfinite(activation.values).all()) and bool(activation.values.any())
        for activation in captured.values()
    )
    return "ok" if is_sound else "wrong numbers"


def route(path: str = "/health/deep") -> Route:
    """Return the route of the health check."""
    return Route(path, Health({"script": script, "engine": capture}).answer)
