"""Count a server's runs, waits, memory and errors for Prometheus."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """Counters of one process; nothing in them names a person, an image or a file."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """Start at zero.

        Args:
            gauges: what is read at each scrape: by name, a description and what reads it.
        """
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._runs = Counter(
            "hookviz_runs", "Runs that ended.", ("kind", "outcome"), registry=self._registry
        )
        self._errors = Counter(
            "hookviz_errors", "Failures that were not the visitor's.", registry=self._registry
        )
        self._held_back = Counter(
            "hookviz_held_back",
            "Messages of visitors that came faster than they may.",
            registry=self._registry,
        )
        self._cut_off = Counter(
            "hookviz_cut_off", "Visitors who did not read what they got.", registry=self._registry
        )
        self._live = Gauge(
            "hookviz_live_streams", "Cameras that are drawn live now.", registry=self._registry
        )
        self._frames = Counter(
            "hookviz_live_frames", "Frames of theirs.", ("outcome",), registry=self._registry
        )
        for outcome in ("done", "refused"):
            self._frames.labels(outcome)  # there from the start, at zero
        self._questions = Counter(
            "hookviz_questions",
            "Questions of the explorer.",
            ("question", "outcome"),
            registry=self._registry,
        )
        self._questions.labels("tiles", "answered")  # likewise
        self._seconds = Histogram(
            "hookviz_run_seconds",
            "Time that a run took, without its wait.",
            ("kind",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._waits = Histogram(
            "hookviz_wait_seconds",
            "Time that a run waited for its turn.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        for name, (description, read) in gauges.items():
            Gauge(f"hookviz_{name}", description, registry=self._registry).set_function(read)

    def run_ended(self, kind: str, outcome: str, seconds: float, waited: float) -> None:
        """Count a run that had its turn.

        Args:
            kind: what was run: one of a few words of the code, never a visitor's.
            outcome: how it ended, likewise.
            seconds: how long it took, without its wait.
            waited: how many seconds it waited.
        """
        self._runs.labels(kind, outcome).inc()
        self._seconds.labels(kind).observe(seconds)
        self._waits.observe(waited)

    def failed(self) -> None:
        """Count a failure of our own."""
        self._errors.inc()

    def held_back(self) -> None:
        """Count a message of a visitor that the throttle delays."""
        self._held_back.inc()

    def cut_off(self) -> None:
        """Count a visitor whose connection was ended because they read too slowly."""
        self._cut_off.inc()

    @contextmanager
    def live(self) -> Iterator[None]:
        """Count a stream of frames for the block."""
        with self._live.track_inprogress():
            yield

    def frame(self, outcome: str) -> None:
        """Count a frame of a stream by how it ended: one of a few words of the code."""
        self._frames.labels(outcome).inc()

    def question(self, name: str, outcome: str) -> None:
        """Count a question of the explorer.

        Args:
            name: one of those that there are, or ``""``; never a visitor's word.
            outcome: how it ended: one of a few words of the code.
        """
        self._questions.labels(name, outcome).inc()

    @contextmanager
    def served(self, address: str, port: int) -> Iterator[int]:
        """Serve ``/metrics`` on a port of its own for the block; yields the port, for 0 a free one.

        Raises:
            OSError: the port is taken, or the address is not this machine's.
        """
        server, thread = start_http_server(port, address, self._registry)
        try:
            yield int(server.server_port)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
