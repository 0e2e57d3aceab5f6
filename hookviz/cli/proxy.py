"""Put Caddy before several servers: one address, and each visitor stays at their server.

The rules are those of compose.yaml, from the same Caddyfile; docs/adr/0006 says why it is Caddy.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from hookviz.classroom.codes import letter_of
from hookviz.cli.processes import Process
from hookviz.errors import HookVizError
from hookviz.serving.short_links import start_of
from hookviz.settings import settings

_BY_CODE = """
@class{number} expression `{{query.follow}}.upperAscii().startsWith("{letter}")`
reverse_proxy @class{number} 127.0.0.1:{port} {{
	lb_policy cookie hookviz_copy
	lb_try_duration 10s
}}
@short{number} path /hookviz/go/{start}*
reverse_proxy @short{number} 127.0.0.1:{port}
"""
"""A class's link takes whoever opens it to its server, and the cookie keeps them there. A short one
is answered by the server that made it, and nobody moves."""

_HERE = Path(__file__).parent
_RULES = (_HERE / "Caddyfile", _HERE.parent.parent / "deploy" / "Caddyfile")
"""In the wheel, or in a checkout."""


def proxy(address: str, port: int, servers: Sequence[int]) -> Process:
    """Return the process of a proxy before servers on these ports of this machine.

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
        "SERVERS": " ".join(f"127.0.0.1:{own}" for own in servers),
        "BY_CODE": "".join(map(_by_code, range(len(servers)), servers)),
        "UPLOAD_MB": str(largest),
        "PROXY_LOG": "WARN",
    }
    command = [caddy, "run", "--config", str(rules), "--adapter", "caddyfile"]
    return Process("The proxy", command, {**os.environ, **environment})


def _by_code(number: int, port: int) -> str:
    """Return the rules by which codes that a server made lead to it."""
    return _BY_CODE.format(
        number=number, port=port, letter=letter_of(number), start=start_of(number)
    )
