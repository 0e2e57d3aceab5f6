"""Fetch the engine of live pages, ONNX Runtime Web, and put it into ``assets/engine``.

    python -m scripts.engine

It is had from npm's registry by its exact version, and npm checks the package against the
registry's own hash. Here each file is checked against the hash that is written below, so that a
second run gives the very same files.

Its script is a module, and a page that is a file can start no worker from a module. So it is
written as an ordinary script: what it exports becomes the worker's ``ort``, and its own address the
worker's.
"""

import gzip
import hashlib
import re
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from hookviz.standalone.live_page import ENGINE, LICENCE, SCRIPT, VERSION, WASM

FILES = {
    f"package/dist/{SCRIPT}": "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    f"package/dist/{WASM}": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
"""Files of the package, each with its SHA-256."""


def as_script(module: str) -> str:
    """Return a module as a script that sets ``ort`` to what the module exports."""
    body, count = re.subn(
        r"export\{([^}]*)\};", lambda match: f"globalThis.ort={{{_fields(match[1])}}};", module
    )
    assert count == 1, f"it exports in {count} places"
    return (
        f'(()=>{{"use strict";{body.replace("import.meta.url", "globalThis.location.href")}\n}})();'
    )


def _fields(exports: str) -> str:
    """Return ``a as A,b as B`` as ``A:a,B:b``."""
    pairs = (each.split(" as ") for each in exports.split(","))
    return ",".join(f"{name}:{local}" for local, name in pairs)


def main() -> None:
    """Fetch the package, check its files, and write them compressed."""
    ENGINE.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"onnxruntime-web@{VERSION}"]
        subprocess.run(command, cwd=folder, check=True)
        [archive] = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as files:
            for name, digest in FILES.items():
                member = files.extractfile(name)
                assert member is not None, name
                data = member.read()
                assert hashlib.sha256(data).hexdigest() == digest, f"{name} is another file"
                if name.endswith(SCRIPT):
                    data = as_script(data.decode()).encode()
                packed = gzip.compress(data, 9, mtime=0)
                (ENGINE / f"{Path(name).name}.gz").write_bytes(packed)
                print(f"{name}: {len(data):,} bytes, {len(packed):,} compressed")
    assert (ENGINE / LICENCE).exists(), "the licence goes along"


if __name__ == "__main__":
    main()
