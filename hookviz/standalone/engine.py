"""Name the files of ONNX Runtime Web, which runs a network in a browser.

They lie in ``assets/engine`` as ``scripts/engine.py`` fetched them from npm's package, and go into
each live page: `docs/adr/0017-a-live-page-brings-its-engine.md` says why.
"""

from functools import cache

from hookviz.settings import ASSETS

VERSION = "1.30.0"
"""Version of ONNX Runtime Web."""

ENGINE = ASSETS / "engine"
"""The folder of its files."""

SCRIPT, WASM = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
"""Its script, a module, and its program, which runs in one thread too; both lie there gzipped."""

LICENCE = "LICENSE-onnxruntime"
"""Its licence, MIT."""


@cache
def engine_file(name: str) -> bytes:
    """Return a file of the engine as it lies there, gzipped."""
    return (ENGINE / f"{name}.gz").read_bytes()
