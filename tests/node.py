"""Run JavaScript of ours in node, which the checks of the scripts need anyway."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import hookviz.explorer

CLIENT = Path(hookviz.explorer.__path__[0]) / "client"


def run_node(script: str) -> str:
    """What a module prints."""
    node = shutil.which("node") or str(Path(".venv/bin/node"))
    done = subprocess.run(
        [node, "--input-type=module"], input=script, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_client(module: str, expression: str, **facts: Any) -> Any:
    """The value of an expression with a module of the explorer's client as `it`, and with facts."""
    given = f"const {{ {', '.join(facts)} }} = {json.dumps(facts)};\n" if facts else ""
    url = (CLIENT / module).resolve().as_uri()
    begins = f'globalThis.window = {{}};\nconst it = await import("{url}");\n'
    return json.loads(run_node(f"{begins}{given}console.log(JSON.stringify({expression}));"))
