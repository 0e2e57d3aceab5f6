"""Load torch's shared libraries beside the interpreter, which goes on meanwhile.

`import torch` loads a gigabyte of them and holds the interpreter's lock for a quarter of a second
that the dynamic linker takes to fit them together. The linker needs no lock of Python's.
"""

import ctypes
import os
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

_GLOBAL = "libtorch_global_deps.so"  # first and for everybody, as torch itself does
_LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so")


def load_beside() -> None:
    """Begin to load torch's libraries, on Linux and where it is not imported yet.

    An `import torch` in the meantime waits for what it needs. What can't be loaded is left to it:
    it knows where else to look, and what to say.
    """
    if sys.platform == "linux" and "torch" not in sys.modules:
        threading.Thread(target=_load, name="torch-libraries", daemon=True).start()


def _load() -> None:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent / "lib"
    # As a foreign function: that of `ctypes.CDLL` itself keeps the interpreter's lock.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    if dlopen(os.fsencode(folder / _GLOBAL), os.RTLD_NOW | os.RTLD_GLOBAL):
        for name in _LIBRARIES:
            dlopen(os.fsencode(folder / name), os.RTLD_NOW)
