import gc
import json
import sys
import weakref
from typing import Any

import pytest

from hookviz.shallow_json import DEEPEST, parse


@pytest.mark.parametrize(
    "value",
    [
        {"cell": [1, 2], "name": 'a [[[ " ]} \\', "none": None},
        "[" * 5000,
        [[]] * 5000,
        json.loads("[" * DEEPEST + "]" * DEEPEST),
    ],
)
def test_what_is_read_is_what_json_reads(value: object) -> None:
    text = json.dumps(value)
    assert parse(text) == value
    assert parse(text.encode()) == value
    assert parse(text.encode("utf-16")) == value


@pytest.mark.parametrize(
    "text",
    [
        *("[" * (DEEPEST + 1), '{"a":' * 3000, "[" * 100_000, "[" * 65 + "]" * 65),
        *("", "]" * 3000, '"[', '"\\', "{]", "nan", b"\xff\xfe\x00", b"\x80"),
    ],
)
def test_what_is_too_deep_or_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of three kinds
        parse(text)


def test_callbacks_that_come_while_it_reads_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept: ...

    def called(_reference: Any) -> None:
        def into(depth: int) -> int:
            return depth and into(depth - 1)

        into(6)

    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: lost.append(error.exc_type))
    before = gc.get_threshold()
    references = []
    try:
        for number in range(200):
            gc.disable()
            kept: Any = Kept()
            kept.itself = kept
            references.append(weakref.ref(kept, called))
            del kept
            gc.set_threshold(900 + number)
            gc.enable()
            with pytest.raises(ValueError, match="brackets"):
                parse("[" * 3000)
    finally:
        gc.set_threshold(*before)
        gc.enable()
    assert lost == []
