"""An ASGI application: what comes to it and what it sends, or a server of it on loopback."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import uvicorn
from starlette.types import ASGIApp, Message, Scope, Send

from tests.loops import in_a_loop_of_its_own


async def talk(
    app: ASGIApp, scope: Scope, *coming: Message, send: Send | None = None
) -> list[Message]:
    """Return what the app sends; these messages come to it, and then none."""
    waiting, sent = list(coming), list[Message]()

    async def receive() -> Message:
        return waiting.pop(0) if waiting else await asyncio.Event().wait()  # type: ignore[return-value]

    async def note(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send or note)
    return sent


def sent_by(
    app: ASGIApp, scope: Scope, *coming: Message, send: Send | None = None
) -> list[Message]:
    """The same, in a loop of its own."""
    return in_a_loop_of_its_own(talk(app, scope, *coming, send=send))


@contextmanager
def served(app: ASGIApp) -> Iterator[int]:
    """A server of the app in this process, and its port."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    with closing(socket.create_server(("127.0.0.1", 0), backlog=2048)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()
