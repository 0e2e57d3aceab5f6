"""What the server does at its start and end, and what its health check says, and how often."""

import asyncio
import json
import logging
import signal
from contextlib import AbstractContextManager

import pytest
import torch
from streamlit.testing.v1 import AppTest

from hookviz.capturing import engine, inputs
from hookviz.explorer.layers import captured, resolve
from hookviz.explorer.subject import Run, Subject
from hookviz.explorer.view import View
from hookviz.hooking import network_state
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.machine.memory import MEGABYTE
from hookviz.models import bundled, catalog
from hookviz.serving import capacity
from hookviz.serving.capacity import shutdown
from hookviz.settings import settings
from hookviz.ui.serving import lifecycle, resources
from hookviz.ui.serving.lifecycle import Health
from hookviz.ui.state import ModelChoice
from tests.loops import in_a_loop_of_its_own


def no_turn(_label: str, _kind: str, _layer: str) -> AbstractContextManager[Run]:
    pytest.fail("the first visitor waits for a pass")


def test_warming_up_loads_the_model_to_start_with_and_keeps_what_its_sample_gave() -> None:
    capacity.sample_activations().clear()
    lifecycle.warm_up()
    choice = ModelChoice(catalog.find_model(bundled.DEFAULT), "pretrained")
    with resources.use_model(choice) as model, resources.use_model(choice) as again:
        assert again is model
        assert len(network_state._idle[model.network]) >= 1
        first = inputs.prepare_input(model, samples()[0].path)
        subject = Subject(
            model=model,
            model_input=first,
            image=reading.read(samples()[0].path),
            cache=capacity.activation_budget().cache(settings().session_mb * MEGABYTE),
            shared=capacity.sample_activations(),
            take_turn=no_turn,
        )
        looked = resolve(subject, View())
        kept = captured(subject, looked)
        passed = engine.capture(model, samples()[0].path, looked.step.layer)
        assert torch.equal(kept[str(looked.step)].values, passed[str(looked.step)].values)


BROKEN = """
from hookviz.ui.serving import lifecycle
assert lifecycle.on_script_error(ZeroDivisionError("secret detail"))
"""


def test_an_error_of_ours_is_logged_and_shown_without_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, logger="hookviz"):
        page = AppTest.from_string(BROKEN).run()
    assert "Something went wrong on our side" in page.error[0].value
    assert "secret" not in page.error[0].value
    assert caplog.records[0].exc_info is not None


def test_a_signal_to_end_begins_the_shutdown_and_then_does_what_it_did_before() -> None:
    heard: list[bool] = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(shutdown().has_begun))
    own = signal.getsignal(signal.SIGTERM)
    try:
        with lifecycle.shutdown_begins_with_the_signal():
            signal.raise_signal(signal.SIGTERM)
        assert heard == [True]
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
        shutdown().has_begun = False


def test_a_server_opens_as_many_files_as_it_may() -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        lifecycle.allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_asking_often_checks_once_and_never_twice_at_a_time() -> None:
    now, most, count = 0, 0, 0

    async def check() -> str:
        nonlocal now, most, count
        now, count = now + 1, count + 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return "ok"

    assert in_a_loop_of_its_own(lifecycle.check_engine()) == "ok"

    async def crowd(fresh: float) -> list[int]:
        here = Health({"engine": check}, fresh)
        return [
            answer.status_code for answer in await asyncio.gather(*(here.answer() for _ in "12345"))
        ]

    assert in_a_loop_of_its_own(crowd(60)) == [200] * 5
    assert (most, count) == (1, 1)
    assert in_a_loop_of_its_own(crowd(0)) == [200] * 5
    assert (most, count) == (1, 6)


def test_what_fails_or_hangs_is_503_without_its_details(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_CHECK_TIMEOUT_S", 0.05)

    async def broken() -> str:
        raise ZeroDivisionError("secret path")

    async def hangs() -> str:
        await asyncio.sleep(60)
        return "ok"

    answer = in_a_loop_of_its_own(Health({"script": broken, "page": hangs}).answer())
    assert answer.status_code == 503
    assert json.loads(bytes(answer.body)) == {
        "status": "failed",
        "script": "error",
        "page": "timeout",
    }
    assert answer.headers["cache-control"] == "no-store"
