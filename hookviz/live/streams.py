"""The streams of one process: who may send frames, and what they show."""

import secrets
import threading
from functools import cache

from hookviz.live.subject import Subject


class Streams:
    """One for the process. A session has one token from when it offers until it withdraws."""

    def __init__(self) -> None:
        """Nobody is live."""
        self._lock = threading.Lock()
        self._tokens: dict[str, str] = {}

    def offer(self, owner: str, cookie: str, subject: Subject) -> str:  # noqa: ARG002
        """The session's token, the same one until it is withdrawn; its stream shows `subject`.

        Args:
            owner: the session, by `hookviz.ui.serving.turns.session`.
            cookie: the visitor's ``_streamlit_xsrf``, which the stream has to come with.
            subject: what is shown from now on.
        """
        with self._lock:
            return self._tokens.setdefault(owner, secrets.token_urlsafe(24))

    def withdraw(self, owner: str) -> None:
        """End the session's stream, if it has one; its token is worth nothing any more."""
        with self._lock:
            self._tokens.pop(owner, None)


@cache
def streams() -> Streams:
    """The streams of this process."""
    return Streams()
