"""Hand a run's writings of the fragment to the browser, and hear of it what the fragment says."""

from hookviz.ui.components.files import mount
from hookviz.ui.link import address


def hand_over_address() -> None:
    """Say by which view this run has drawn, and what was written into the fragment until now.

    Where the fragment says otherwise the browser says so, and the page runs again. It is said last,
    since a run that the browser's Back asked for may not be taken for a click's.
    """
    known = address()
    facts = {
        "view": known.drawn,
        "changes": known.changes,
        "number": known.number,
        "isStep": known.is_step and not known.has_query_step,
    }
    if known.drawn is not None or known.changes:
        mount("address", "hv-address", facts, changed=known.receive)
    known.has_query_step, known.drawn = False, None
