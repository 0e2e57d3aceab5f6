"""Find out which packages of the app are missing where the library is installed alone."""

import sys
from importlib.util import find_spec

from hookviz.errors import HookVizError

INSTALL_APP = "pip install 'hookviz[app]'"

APP_PACKAGES = (
    "streamlit",
    "uvicorn",
    *(["uvloop"] if sys.platform != "win32" else []),
    "prometheus_client",
    "segno",
    "yaml",
    "markdown_it",
    "reportlab",
)
"""What the extra ``app`` brings beside the library, by the names under which it is imported."""


def missing_app_packages() -> list[str]:
    """Return those of `APP_PACKAGES` that can't be found; nothing is imported."""
    return [name for name in APP_PACKAGES if find_spec(name) is None]


def check_app() -> None:
    """Raise where packages of the app are missing.

    Raises:
        HookVizError: they are; it names the command that installs them.
    """
    missing = missing_app_packages()
    if missing:
        raise HookVizError(
            f"The app needs packages that are not installed ({', '.join(missing)}): {INSTALL_APP}"
        )
