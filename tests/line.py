"""A line between a visitor and a server that can be cut, as a bad network or a proxy would."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_PIECE = 4096


class Line:
    """A TCP proxy on loopback.

    Attributes:
        address: in place of the server's own.
        cuts: how many connections were cut.
    """

    def __init__(self, server: str) -> None:
        self._server = (urlsplit(server).hostname or "", urlsplit(server).port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self._is_down = False
        self._left: int | None = None  # bytes to the visitor until the line is cut
        self._changed = threading.Lock()
        self._open: set[tuple[socket.socket, socket.socket]] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, size: int) -> None:
        """Cut every connection, once, when so many bytes more have come from the server."""
        with self._changed:
            self._left = size

    def go_down(self) -> None:
        """Cut every connection, and every new one at once, until it comes up again."""
        self._is_down = True
        self._cut()

    def come_up(self) -> None:
        """Carry again."""
        self._is_down = False

    def close(self) -> None:
        """Take no more connections, and cut those that there are."""
        self._listener.close()
        self._cut()

    def _cut(self) -> None:
        with self._changed:
            pairs, self._left = list(self._open), None
            self._open.clear()
        for pair in pairs:
            self.cuts += 1
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                visitor, _ = self._listener.accept()
                if self._is_down:
                    visitor.close()
                    continue
                pair = (visitor, socket.create_connection(self._server))
                with self._changed:
                    self._open.add(pair)
                for direction in (pair, pair[::-1]):
                    threading.Thread(target=self._carry, args=direction, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                if (target, source) in self._open and not self._spend(len(piece)):
                    self._cut()
                    return
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with self._changed:
            self._open -= {(source, target), (target, source)}

    def _spend(self, size: int) -> bool:
        """Whether the line still holds for so many bytes to the visitor."""
        with self._changed:
            if self._left is None:
                return True
            self._left -= size
            return self._left >= 0


@contextmanager
def line_to(server: str) -> Iterator[Line]:
    """A line to the server at that address, for the block."""
    line = Line(server)
    try:
        yield line
    finally:
        line.close()
