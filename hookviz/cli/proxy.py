"""Caddy before several servers: one address, and each visitor stays at the server of their session.

The rules are those of compose.yaml, from the same Caddyfile; docs/adr/0006 says why it is Caddy.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from hookviz.cli.processes import Process
from hookviz.errors import HookVizError
from hookviz.settings import settings

_HERE = Path(__file__).parent
_RULES = (_HERE / "Caddyfile", _HERE.parent.parent / "deploy" / "Caddyfile")
"""In the wheel, or in a checkout."""


def proxy(address: str, port: int, servers: Sequence[int]) -> Process:
    """The proxy that listens there, before servers on these ports of this machine.

    Raises:
        HookVizError: there is no Caddy on this machine.
    """
    caddy = shutil.which("caddy")
    rules = next(filter(Path.is_file, _RULES), None)
    if caddy is None or rules is None:
        raise HookVizError(
            "Several processes need the proxy Caddy before them, and there is no caddy on the "
            "PATH (Debian, Ubuntu: apt install caddy; macOS: brew install caddy). Without "
            "--processes one server runs alone."
        )
    largest = max(settings().upload_mb, settings().checkpoint_mb)
    environment = {
        "SITE": f"http://:{port}",
        "LISTEN": f"bind {address}",
        "COPIES": "listed",
        "SERVERS": " ".join(f"127.0.0.1:{each}" for each in servers),
        "UPLOAD_MB": str(largest),
        "PROXY_LOG": "WARN",
    }
    command = [caddy, "run", "--config", str(rules), "--adapter", "caddyfile"]
    return Process("The proxy", command, {**os.environ, **environment})
