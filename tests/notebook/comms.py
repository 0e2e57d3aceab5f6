"""A comm without a kernel: it takes what ipywidgets sends, and hands it what a client would."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm

from hookviz.notebook.widget import ExplorerWidget

_PATIENCE = 20  # seconds


class ClientComm(BaseComm):
    """The client's side of a widget's comm.

    Attributes:
        state: what the client knows of the widget's traits.
        said: custom messages in order, each with the bytes of its files.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        self.state: dict[str, Any] = {}
        self.said: list[tuple[dict[str, Any], list[bytes]]] = []
        self._news = threading.Condition()
        super().__init__(*given, **more)

    def publish_msg(self, msg_type: str, data: Any = None, *_: Any, **more: Any) -> None:
        """Take a message; of those about traits their values."""
        with self._news:
            if data and "state" in data:
                self.state |= data["state"]
            elif data and data["method"] == "custom":
                self.said.append((data["content"], list(more.get("buffers") or ())))
            self._news.notify_all()

    def tell(self, content: Mapping[str, Any]) -> None:
        """Send a custom message to the widget."""
        self._hand({"method": "custom", "content": content})

    def choose(self, **view: str) -> None:
        """Choose a view as a click does."""
        self._hand({"method": "update", "state": {"view": view}})

    def _hand(self, data: Mapping[str, Any]) -> None:
        self.handle_msg({"content": {"data": data}, "buffers": []})

    def ask(self, name: str, **facts: Any) -> str:
        """Ask a question about what is shown, and return its number."""
        number = f"n{len(self.said)}-{name}"
        view = self.state["view"]
        about = {"view": view, "subject": self.state["_subject"], "theme": "light"}
        self.tell({"ask": number, "question": {"name": name, **facts}, **about})
        return number

    def last(self, number: str) -> tuple[dict[str, Any], list[bytes]]:
        """Wait for the last message about a question."""

        def found() -> Any:
            of = [each for each in self.said if each[0].get("number") == number]
            return next((each for each in of if each[0]["kind"] in ("answer", "refused")), None)

        with self._news:
            assert self._news.wait_for(found, _PATIENCE), self.said
            return found()  # type: ignore[no-any-return]


@contextmanager
def client_comms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have widgets that are made in the block open such comms."""
    with monkeypatch.context() as patch:
        patch.setattr(comm, "create_comm", ClientComm)
        yield


def client_of(widget: ExplorerWidget) -> ClientComm:
    """The client's side of a widget."""
    assert isinstance(widget.comm, ClientComm)
    return widget.comm
