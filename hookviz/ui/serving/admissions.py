"""Know which sessions came in by the class code or a login, for routes beside the page."""

from hookviz.settings import settings

_admitted: dict[str, str] = {}  # Streamlit's id, by the session's own name


def admit(name: str, session: str) -> None:
    """Note that a session came in, by its own name and by Streamlit's id for it."""
    _admitted[name] = session


def withdraw(name: str) -> None:
    """Forget a session that is over."""
    _admitted.pop(name, None)


def has_door() -> bool:
    """Return whether a class code or a login stands before the page."""
    return bool(settings().class_code or settings().login)


def is_admitted(session: str) -> bool:
    """Return whether a session, by Streamlit's id, may use more than the door: all may without one.

    A page that comes back is admitted as soon as it is drawn again.
    """
    return not has_door() or session in _admitted.values()
