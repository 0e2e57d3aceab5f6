"""Say beneath a lens's answer how its numbers are rounded, where that is not as `capture` does."""

from hookviz.drawing.panels import TextPanel


def how_note(how: str) -> tuple[TextPanel, ...]:
    """Return the note that says so; none where there is nothing to say.

    Args:
        how: in words, as of `hookviz.hooking.channels_last.how`; empty of plain passes.
    """
    return (TextPanel(how, "note"),) if how else ()
