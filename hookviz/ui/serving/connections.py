"""What keeps one visitor's connection from holding up the others, and lets it come back whole."""

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime import get_instance
from streamlit.runtime.runtime import RuntimeState

from hookviz.serving import capacity
from hookviz.ui.serving import slow_readers
from hookviz.ui.serving.cached_messages import CachedMessages
from hookviz.ui.serving.changed_together import ChangedTogether
from hookviz.ui.serving.interruption import Interruption
from hookviz.ui.serving.pace import Pace
from hookviz.ui.serving.resumption import LastRequests, Resumption
from hookviz.ui.serving.visitor_bounds import VisitorBounds

_PAGE = "/_stcore/stream"  # where Streamlit's page connects


class Connections:
    """The page's WebSocket at its pace, for those who read what they get."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app
        self._last = LastRequests()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is no page's, and a page's own with these bounds."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        metrics = capacity.metrics()

        def end() -> None:
            slow_readers.cut(receive)
            if metrics is not None:
                metrics.cut_off()

        if not scope["path"].endswith(_PAGE):  # a stream of frames, which keeps a pace of its own
            in_time = slow_readers.in_time(send, end, lambda: False, slow_readers.PATIENCE)
            await self._app(scope, receive, in_time)
            return
        pace = Pace(receive, *([metrics.held_back] if metrics else []))
        in_time = slow_readers.in_time(
            send, end, lambda: _is_given_up(page.session), slow_readers.PATIENCE
        )
        together = ChangedTogether(pace.next)
        cached = CachedMessages(together.receive, in_time)
        runs = Interruption(cached.receive, cached.send)
        page = Resumption(scope, runs.receive, runs.send, self._last)
        try:
            await self._app(scope, page.receive, page.send)
        finally:
            page.close()
            pace.close()


def _is_given_up(session: str) -> bool:
    """Whether Streamlit has given up a session, as it does where its messages find no room."""
    runtime = get_instance()
    ending = runtime.state in (RuntimeState.STOPPING, RuntimeState.STOPPED)
    return bool(session) and not ending and not runtime.is_active_session(session)


MIDDLEWARE = [Middleware(Connections), Middleware(VisitorBounds)]
"""For `streamlit.App`; the first stands at the door."""
