"""Put a picture above the live widget, which the notebook's file keeps, and let it follow.

It is drawn anew once a person has looked at a layer for a moment: who steps through layers waits
for none.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any
from uuid import uuid4

from hookviz.errors import HookVizError
from hookviz.notebook.kernel import put_out

DELAY_S = 0.5


class SavedPicture:
    """Outputs of one widget that a saved notebook shows in its place."""

    def __init__(
        self,
        draw: Callable[[], Mapping[str, Any]],
        run: Callable[[Callable[[], object]], object],
    ) -> None:
        """Show nothing yet.

        Args:
            draw: returns the picture by its MIME types.
            run: calls something in the thread that may draw.
        """
        self._draw, self._run = draw, run
        self._names: list[str] = []  # by which the outputs are put out again
        self._timer: threading.Timer | None = None

    def put_out(self) -> None:
        """Put the picture out below the cell that runs."""
        self._names.append(uuid4().hex)
        self._show(self._names[-1:], again=False)

    def follow(self) -> None:
        """Draw the picture again soon, in another thread; of quick calls the last one counts."""
        self.rest()
        if not self._names:
            return
        context = copy_context()  # of the message that it answers
        self._timer = threading.Timer(DELAY_S, context.run, [self._run, self._again])
        self._timer.daemon = True
        self._timer.start()

    def rest(self) -> None:
        """Leave the picture as it is."""
        if self._timer is not None:
            self._timer.cancel()

    def _again(self) -> None:
        with suppress(HookVizError):  # the screen says why there are no tiles
            self._show(self._names, again=True)

    def _show(self, names: Sequence[str], *, again: bool) -> None:
        data = self._draw()
        for name in names:
            put_out(data, name=name, again=again)
