"""Show the explorer: a client in the browser that asks a route of the server."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookviz.explorer.client_facts import client_fields
from hookviz.ui.components.files import mount


def explorer(
    line: Mapping[str, str],
    on_opened: Callable[[Any], None],
    *,
    questions: Sequence[Mapping[str, Any]] = (),
    rows: Mapping[str, Any] | None = None,
) -> None:
    """Show the explorer of what a page run hands over, or its rows alone, over something else.

    What a person chooses in it goes into the address by itself; in the explorer as a whole that is
    no run of the page.

    Args:
        line: the ``path`` that answers, the ``token`` by which this session asks, and the key of
            the ``subject`` that is asked about: another one has the client ask anew.
        on_opened: gets what only the page can do, as facts that come from a browser and can be
            anything: ``{"unpin": true}``, ``{"atlas": true}``, ``{"leads": …}`` to a patch's image,
            ``{"anew": true}`` for a run of the page alone; and ``{"chosen": …}`` by the rows, the
            words of a link that were chosen with what they are now.
        questions: what can be asked about a channel: ``says``, ``hint``, ``needsWeights`` and the
            ``link`` that leads there.
        rows: of the rows alone: what is answered about the ``layers``, and whether it can be chosen
            how channels are drawn (``hasLook``).
    """
    name = "explorer" if rows is None else "explorer_rows"
    facts = {**line, **(rows or {}), "fields": client_fields(), "questions": questions}
    mount(name, name, facts, opened=on_opened)


def explorer_tree() -> None:
    """Make the place where the explorer puts its tree of layers."""
    mount("explorer_tree", "explorer-tree", {})
