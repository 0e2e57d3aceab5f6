"""Show the lenses as cards, each with a small picture of its answer, which the browser asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from hookviz.ui.components.files import component, packed


def lens_cards(line: Mapping[str, str], groups: Sequence[Mapping[str, Any]]) -> None:
    """Show groups of cards; a click on one goes to its lens by the link.

    Args:
        line: where pictures are asked for: ``path``, ``token`` and ``subject``.
        groups: each with its ``title`` and its ``lenses``: ``slug``, ``question``, ``title`` and
            ``sentence``.
    """
    component("lens_cards")(
        key="lens-cards",
        data=packed({**line, "groups": groups}),
        on_opened_change=_run,
    )


def _run() -> None:
    """Do nothing: the run of the page is what was asked for."""
