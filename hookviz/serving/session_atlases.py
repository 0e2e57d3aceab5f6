"""Build a session's atlases of its own images, in a thread behind everybody who explores.

An atlas counts in the session's cache from its first step on, and may be evicted as all of it.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.growing import BuildProgress, GrowingAtlas
from hookviz.capturing.cache import ByteCache
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.language.speaking import current, speak
from hookviz.serving import capacity, logs
from hookviz.serving.memory_reservations import own_pass_need
from hookviz.types import Model

MOST = 200
"""How many images an atlas of a session can have."""

_STEP_SECONDS = 0.3  # seconds that it computes before others have their turn
_EVICTED = mark(
    "It gave way to what needed the memory more. Make it again, perhaps of fewer images."
)

_log = logging.getLogger("hookviz")


class _StoppedError(Exception):
    """Raised in the thread where nobody wants it to go on."""


@dataclass(frozen=True, slots=True)
class BuildStatus:
    """Status of the building of an atlas.

    Attributes:
        digest: of the model.
        progress: how far it is.
        per_second: images a second since it began or went on; 0.0 before the first, and at rest.
        running: whether it goes on by itself; else it was stopped, or `fault` says why it ended.
        fault: why it ended, in words.
    """

    digest: str
    progress: BuildProgress
    per_second: float
    running: bool
    fault: str = ""


class SessionAtlases:
    """Atlases of one session, one of which is being built at most."""

    def __init__(self, owner: str, cache: ByteCache, most: int) -> None:
        """Start without any.

        Args:
            owner: the session, for the queue and the log.
            cache: of the session; what is made is kept there and nowhere else.
            most: bytes that one atlas may take.
        """
        self._owner, self._cache, self._most = owner, cache, most
        self._build: _Build | None = None

    def make(
        self,
        use_model: Callable[[], AbstractContextManager[Model]],
        digest: str,
        files: Sequence[tuple[str, bytes]],
    ) -> tuple[str, ...]:
        """Begin an atlas in place of the one that is being built, and return its images' names.

        Args:
            use_model: borrows the model for a block; called in another thread.
            digest: of that model.
            files: what each is called and its bytes; the first `MOST` of them count.
        """
        if self._build is not None:
            self.drop(self._build.digest)
        growing = GrowingAtlas(files[:MOST], most=self._most)
        self._cache.put(_key(digest), growing, 0)
        self._build = _Build(self._owner, self._cache, use_model, digest, progress=growing.progress)
        self._build.start()
        return growing.names

    def go_on(self) -> None:
        """Go on with what was stopped."""
        build = self._build
        if build is not None and build.ended and not build.fault:
            self._build = build.resumed()
            self._build.start()

    def stop(self) -> None:
        """Stop what is being built; `go_on` resumes it."""
        if self._build is not None:
            self._build.end()

    def drop(self, digest: str) -> None:
        """Forget the atlas of a model, finished or not."""
        if self._build is not None and self._build.digest == digest:
            self.end()
        self._cache.drop(_key(digest))

    def atlas(self, digest: str) -> Atlas | None:
        """Return the finished atlas of a model; None where there is none."""
        cached = self._cache.get(_key(digest))
        return cached if isinstance(cached, Atlas) else None

    @property
    def making(self) -> BuildStatus | None:
        """Status of what is being built; None where there is none, or it is finished."""
        return None if self._build is None or self._build.finished else self._build.status

    def end(self) -> None:
        """Stop for good, as where the session ends."""
        self.stop()
        self._build = None


class _Build(threading.Thread):
    """Thread that builds one atlas, from when it begins or is resumed until it ends."""

    def __init__(
        self,
        owner: str,
        cache: ByteCache,
        use_model: Callable[[], AbstractContextManager[Model]],
        digest: str,
        *,
        progress: BuildProgress,
        previous: "_Build | None" = None,
    ) -> None:
        super().__init__(name="hookviz-own-atlas", daemon=True)
        self.digest = digest
        self.ended = self.finished = False
        self.fault = ""
        self._owner, self._cache, self._use_model = owner, cache, use_model
        self._previous = previous
        self._keeping = threading.Lock()  # nothing is kept once it has ended
        self._progress = progress
        self._since = time.monotonic(), self._progress
        self._language = current()  # of who asked for it

    def resumed(self) -> "_Build":
        """Return a thread that resumes this one's work."""
        return _Build(
            self._owner,
            self._cache,
            self._use_model,
            self.digest,
            progress=self._progress,
            previous=self,
        )

    def end(self) -> None:
        """Have it end soon, and nothing kept of what it does until then."""
        with self._keeping:
            self.ended = True

    @property
    def status(self) -> BuildStatus:
        """Status for the page."""
        at, start = self._since
        done = self._progress.done - start.done
        running = not self.ended and not self.fault
        rate = done / max(1e-3, time.monotonic() - at) if running else 0.0
        return BuildStatus(self.digest, self._progress, rate, running, self.fault)

    def run(self) -> None:
        """Build until it is finished, stopped or refused, or was evicted."""
        speak(self._language)
        if self._previous is not None:
            self._previous.join()  # its last step
            self._previous = None
        started = time.perf_counter()
        outcome = "done"
        with logs.bound(session=self._owner):
            try:
                while not self.finished:
                    self._step()
            except _StoppedError:
                outcome = "stopped"
            except HookVizError as error:
                outcome, self.fault = "refused", str(error)
            except Exception:  # noqa: BLE001 - the thread has nobody else to tell
                _log.exception("The making of an atlas failed")
                outcome, self.fault = (
                    "failed",
                    say("Something went wrong on our side; it was logged."),
                )
            if self.fault:
                self._cache.drop(_key(self.digest))
            logs.event("atlas", outcome=outcome, ms=round((time.perf_counter() - started) * 1000))

    def _step(self) -> None:
        """Compute for one turn, and keep and count the result in the session's cache.

        Raises:
            HookVizError: what was kept so far was evicted, or there is no room for more.
        """
        with (
            capacity.translate_oom(say("This atlas")),
            self._use_model() as model,
            capacity.reservations().hold(say("This atlas"), own_pass_need(model), self._check),
            capacity.queue().turn(("atlas", self._owner), self._check, background=True),
        ):
            growing: GrowingAtlas | None = self._cache.get(_key(self.digest))
            self._check()
            if growing is None:
                raise HookVizError(say(_EVICTED))
            growing.go_on(model, _STEP_SECONDS)
        size = growing.nbytes
        with self._keeping:
            self._check()
            if not self._cache.put(_key(self.digest), growing.atlas or growing, size):
                raise HookVizError(say(_EVICTED))
            if growing.progress.cutting != self._progress.cutting:
                self._since = time.monotonic(), growing.progress
            self._progress, self.finished = growing.progress, growing.atlas is not None

    def _check(self, _position: int = 0) -> None:
        if self.ended:
            raise _StoppedError


def _key(digest: str) -> tuple[str, str]:
    return "own atlas", digest
