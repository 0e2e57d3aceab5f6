"""Answer every request with the headers of safety, and none for what is the machine's own."""

from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CLOSED: Sequence[str] = ("/_stcore/metrics", "/_stcore/agent")
"""What Streamlit tells whoever asks of the machine, sessions and files."""

_INNER: Sequence[str] = ("/health/deep",)
"""What the machine and its cluster ask for, and no proxy passes on."""

_POLICY = {
    "default-src": "'self'",
    # the page's head, which has its words in it; components, which Streamlit makes blobs of; and
    # protobuf's whole numbers, which are WebAssembly
    "script-src": "'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "media-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "connect-src": "'self' data: blob:",
    "frame-src": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
"""Where what a page loads may come from, and where it may send something: this server alone."""

_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {where}" for name, where in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class Front:
    """ASGI middleware before all others."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, whose answer gets the headers, errors and files included."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # By whole parts of the path, as Streamlit's routes are, and below any base path.
        path = scope["path"].rstrip("/") + "/"
        is_passed_on = any(name == b"x-forwarded-for" for name, _ in scope["headers"])
        shut = (*_CLOSED, *_INNER) if is_passed_on else _CLOSED
        closed = any(f"{each}/" in path for each in shut)
        app = PlainTextResponse("Not Found", 404) if closed else self._app
        await app(scope, receive, send_with_headers)
