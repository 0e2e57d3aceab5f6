"""The atlases of one session: made of its own images in a thread, behind everybody who explores.

What is made counts in the session's cache from its first step on, and gives way as all of it does.
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
from hookviz.serving import capacity, logs, out_of_memory
from hookviz.types import Model

MOST = 200
"""How many images an atlas of a session can have."""

_TURN = 0.3  # seconds that it computes before others have their turn
_GAVE_WAY = mark(
    "It gave way to what needed the memory more. Make it again, perhaps of fewer images."
)

_log = logging.getLogger("hookviz")


class _EndedError(Exception):
    """Nobody wants it to go on."""


@dataclass(frozen=True, slots=True)
class BuildStatus:
    """How the making of an atlas stands.

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
    """One for each session."""

    def __init__(self, owner: str, cache: ByteCache, most: int) -> None:
        """There is none yet.

        Args:
            owner: the session, for the queue and the log.
            cache: of the session; what is made is kept there and nowhere else.
            most: bytes that one atlas may take.
        """
        self._owner, self._cache, self._most = owner, cache, most
        self._work: _Work | None = None

    def make(
        self,
        use_model: Callable[[], AbstractContextManager[Model]],
        digest: str,
        files: Sequence[tuple[str, bytes]],
    ) -> tuple[str, ...]:
        """Begin an atlas in place of the one that is being made; what its images are called.

        Args:
            use_model: borrows the model for a block; called in another thread.
            digest: of that model.
            files: what each is called and its bytes; the first `MOST` of them count.
        """
        if self._work is not None:
            self.drop(self._work.digest)
        growing = GrowingAtlas(files[:MOST], most=self._most)
        self._cache.put(_key(digest), growing, 0)
        self._work = _Work(self._owner, self._cache, use_model, digest, progress=growing.progress)
        self._work.start()
        return growing.names

    def go_on(self) -> None:
        """Go on with what was stopped."""
        work = self._work
        if work is not None and work.ended and not work.fault:
            self._work = work.again()
            self._work.start()

    def stop(self) -> None:
        """Stop what is being made; it can be gone on with."""
        if self._work is not None:
            self._work.end()

    def drop(self, digest: str) -> None:
        """Forget the atlas of a model, finished or not."""
        if self._work is not None and self._work.digest == digest:
            self.end()
        self._cache.drop(_key(digest))

    def atlas(self, digest: str) -> Atlas | None:
        """The finished atlas of a model, if there is one."""
        kept = self._cache.get(_key(digest))
        return kept if isinstance(kept, Atlas) else None

    @property
    def making(self) -> BuildStatus | None:
        """How what is being made stands, until it is finished; None where there is none."""
        return None if self._work is None or self._work.finished else self._work.stands

    def end(self) -> None:
        """Stop for good, as where the session ends."""
        self.stop()
        self._work = None


class _Work(threading.Thread):
    """The making of one atlas, from when it begins or goes on until it ends."""

    def __init__(
        self,
        owner: str,
        cache: ByteCache,
        use_model: Callable[[], AbstractContextManager[Model]],
        digest: str,
        *,
        progress: BuildProgress,
        before: "_Work | None" = None,
    ) -> None:
        super().__init__(name="hookviz-own-atlas", daemon=True)
        self.digest = digest
        self.ended = self.finished = False
        self.fault = ""
        self._owner, self._cache, self._use_model = owner, cache, use_model
        self._before = before
        self._keeping = threading.Lock()  # nothing is kept once it has ended
        self._grown = progress
        self._since = time.monotonic(), self._grown
        self._language = current()  # of who asked for it

    def again(self) -> "_Work":
        """The same, to go on with."""
        return _Work(
            self._owner,
            self._cache,
            self._use_model,
            self.digest,
            progress=self._grown,
            before=self,
        )

    def end(self) -> None:
        """Have it end soon, and nothing kept of what it does until then."""
        with self._keeping:
            self.ended = True

    @property
    def stands(self) -> BuildStatus:
        """How far it is."""
        at, before = self._since
        done = self._grown.done - before.done
        running = not self.ended and not self.fault
        rate = done / max(1e-3, time.monotonic() - at) if running else 0.0
        return BuildStatus(self.digest, self._grown, rate, running, self.fault)

    def run(self) -> None:
        """Go on until it is finished, stopped or refused, or has given way."""
        speak(self._language)
        if self._before is not None:
            self._before.join()  # its last step
            self._before = None
        started = time.perf_counter()
        outcome = "done"
        with logs.bound(session=self._owner):
            try:
                while not self.finished:
                    self._step()
            except _EndedError:
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
        """A turn's work, kept and counted in the session's cache.

        Raises:
            HookVizError: what was kept so far is gone, or there is no room for more.
        """
        with (
            out_of_memory.translate_oom(say("This atlas")),
            self._use_model() as model,
            capacity.queue().turn(("atlas", self._owner), self._check, behind=True),
        ):
            growing: GrowingAtlas | None = self._cache.get(_key(self.digest))
            self._check()
            if growing is None:
                raise HookVizError(say(_GAVE_WAY))
            growing.go_on(model, _TURN)
        size = growing.nbytes
        with self._keeping:
            self._check()
            if not self._cache.put(_key(self.digest), growing.atlas or growing, size):
                raise HookVizError(say(_GAVE_WAY))
            if growing.progress.cutting != self._grown.cutting:
                self._since = time.monotonic(), growing.progress
            self._grown, self.finished = growing.progress, growing.atlas is not None

    def _check(self, _place: int = 0) -> None:
        if self.ended:
            raise _EndedError


def _key(digest: str) -> tuple[str, str]:
    return "own atlas", digest
