import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookviz.serving.metrics import Metrics


def scraped(port: int) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_counted_is_scraped() -> None:
    held = {"bytes": 7.0}
    metrics = Metrics({"cache_bytes": ("Kept.", lambda: held["bytes"])})
    with metrics.served("127.0.0.1", 0) as port:
        metrics.run_ended("capture", "done", 0.02, 0.0)
        metrics.run_ended("capture", "refused", 3.0, 1.5)
        metrics.failed()
        for _ in range(2):
            metrics.held_back()
        metrics.cut_off()
        metrics.question("tiles", "answered")
        held["bytes"] = 9.0
        found = scraped(port)
    assert found["hookviz_runs_total", "capture", "done"] == 1
    assert found["hookviz_runs_total", "capture", "refused"] == 1
    assert found["hookviz_run_seconds_bucket", "capture", "0.025"] == 1
    assert found["hookviz_run_seconds_bucket", "capture", "5.0"] == 2
    assert found["hookviz_run_seconds_sum", "capture"] == pytest.approx(3.02)
    assert found["hookviz_wait_seconds_sum",] == 1.5
    assert found["hookviz_errors_total",] == 1
    assert found["hookviz_held_back_total",] == 2
    assert found["hookviz_cut_off_total",] == 1
    assert found["hookviz_questions_total", "answered", "tiles"] == 1
    assert found["hookviz_cache_bytes",] == 9


def test_the_port_is_this_machines_alone_and_is_free_again_afterwards() -> None:
    with Metrics({}).served("127.0.0.1", 0) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as there:
            assert there.getpeername()[0] == "127.0.0.1"
        with pytest.raises(OSError, match="in use"), Metrics({}).served("127.0.0.1", port):
            pass
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_streams_are_counted_while_they_last_and_their_frames_by_how_they_ended() -> None:
    metrics = Metrics({})
    with metrics.served("127.0.0.1", 0) as port:
        assert scraped(port)["hookviz_live_frames_total", "refused"] == 0
        with metrics.live():
            metrics.frame("done")
            assert scraped(port)["hookviz_live_streams",] == 1
        assert scraped(port)["hookviz_live_streams",] == 0
        assert scraped(port)["hookviz_live_frames_total", "done"] == 1
