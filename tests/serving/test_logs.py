import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hookviz.images import reading
from hookviz.serving import logs
from tests.pictures import encoded, picture


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    logger = logging.getLogger("hookviz")
    before, factory = (logger.handlers[:], logger.level), logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)
    logger.handlers[:], level = before
    logger.setLevel(level)


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_with_what_is_bound() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream)
    with logs.bound(session="s1", request="r1"), logs.bound(model="resnet18"):
        logs.event("capture", layer="conv\n1", ms=12.5)
    logs.event("started", runs=2)
    first, second = written(stream)
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info",
        "event": "capture",
        "session": "s1",
        "request": "r1",
        "model": "resnet18",
        "layer": "conv\\n1",
        "ms": 12.5,
    }
    assert "session" not in second


def test_threads_do_not_see_each_others_fields() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream)
    here, there = threading.Barrier(2, timeout=20), []

    def work(name: str) -> None:
        with logs.bound(session=name):
            here.wait()
            logs.event("capture", model=name)
            here.wait()
        there.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted((line["session"], line["model"]) for line in written(stream)) == [
        ("a", "a"),
        ("b", "b"),
    ]


def test_a_failure_tells_its_place_and_nothing_that_a_visitor_gave() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream)
    try:
        raise ValueError("holiday.png")
    except ValueError:
        logging.getLogger("hookviz.ui").exception("It failed for %s", "holiday.png")
    [line] = written(stream)
    assert (line["level"], line["event"]) == ("error", "It failed for %s")
    assert line["error"] == "ValueError"
    assert "test_logs.py" in line["where"][0]
    assert "holiday" not in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_decoding_says_about_a_file_is_not_written(form: str) -> None:
    stream = io.StringIO()
    logs.set_up(form, stream)
    image = encoded(picture(), "JPEG", exif=b"Exif\x00\x00broken")
    reading.decode(image, "holiday.jpg")
    logging.getLogger("hookviz.images.reading").info("%r: EXIF data ignored", "holiday.jpg")
    assert stream.getvalue() == ""


def test_text_is_warnings_only_and_a_new_way_replaces_the_old() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.set_up("json", first)
    logs.set_up("text", second)
    logs.event("capture")
    logging.getLogger("hookviz").warning("short of %s", "memory")
    assert first.getvalue() == ""
    assert second.getvalue().endswith("WARNING short of memory\n")


def test_only_known_fields_may_be_told() -> None:
    with pytest.raises(AssertionError, match="file"):
        logs.event("upload", file="holiday.png")
    with pytest.raises(AssertionError, match="image"), logs.bound(image="holiday.png"):
        pass


@pytest.mark.parametrize("name", ["hookviz.ui", "streamlit.runtime", "uvicorn.error"])
def test_what_a_browser_sends_forges_no_line_and_moves_no_cursor(name: str) -> None:
    """Streamlit logs a fragment's name as it came: 20 MB of it, or lines that look like ours."""
    stream = io.StringIO()
    logs.set_up("text", io.StringIO())
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger(f"{name}.of_a_test")  # whatever others set for that one
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        logger.warning("No fragment %s", '\n{"level": "error"}\x1b[2J\u202e' + "x" * 100_000)
    finally:
        logger.removeHandler(handler)
    [line] = stream.getvalue().splitlines()
    assert line.startswith('No fragment \\n{"level": "error"}\\x1b[2J\\u202e')
    assert len(line) <= 2000
