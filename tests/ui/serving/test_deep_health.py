"""The health check: what it says, how often it looks, and one check at a time."""

import asyncio
import json
from typing import Any

from hookviz.ui.serving import deep_health
from hookviz.ui.serving.deep_health import Health
from tests.loops import in_a_loop_of_its_own


def body(answer: Any) -> dict[str, str]:
    return dict(json.loads(answer.body))


def test_the_engine_is_really_asked() -> None:
    assert in_a_loop_of_its_own(deep_health.capture()) == "ok"


def test_asking_often_checks_once_and_never_twice_at_a_time() -> None:
    now, most, count = 0, 0, 0

    async def check() -> str:
        nonlocal now, most, count
        now, count = now + 1, count + 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return "ok"

    async def crowd(fresh: float) -> list[int]:
        here = Health({"engine": check}, fresh)
        return [
            answer.status_code for answer in await asyncio.gather(*(here.answer() for _ in "12345"))
        ]

    assert in_a_loop_of_its_own(crowd(60)) == [200] * 5
    assert (most, count) == (1, 1)
    assert in_a_loop_of_its_own(crowd(0)) == [200] * 5
    assert (most, count) == (1, 6)


def test_what_fails_is_503_without_its_details() -> None:
    async def broken() -> str:
        raise ZeroDivisionError("secret path")

    async def fine() -> str:
        return "busy"

    answer = in_a_loop_of_its_own(Health({"script": broken, "engine": fine}).answer())
    assert answer.status_code == 503
    assert body(answer) == {"status": "failed", "script": "error", "engine": "busy"}
    assert answer.headers["cache-control"] == "no-store"


def test_a_check_that_hangs_has_an_end(monkeypatch: Any) -> None:
    monkeypatch.setattr(deep_health, "_PATIENCE", 0.05)

    async def hangs() -> str:
        await asyncio.sleep(60)
        return "ok"

    answer = in_a_loop_of_its_own(Health({"script": hangs}).answer())
    assert (answer.status_code, body(answer)["script"]) == (503, "timeout")
