"""Load torch and torchvision quickly, in a process that is starting.

`import torch` loads a gigabyte of shared libraries and holds the interpreter's lock for a quarter
of a second that the dynamic linker takes to fit them together. The linker needs no lock of
Python's, so `load_beside` loads them in a thread. `import_torchvision` leaves out torch's compiler,
which torchvision draws in and no pass here needs.
"""

import ctypes
import os
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_GLOBAL = "libtorch_global_deps.so"  # first and for everybody, as torch itself does
_LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so")
_COMPILER, _UTILS = "torch._dynamo", "torch._dynamo.utils"


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


def import_torchvision() -> None:
    """Import torchvision in 0.1 s and 150 MB less, where it would take a second.

    `torchvision.ops` imports all of ``torch._dynamo`` for one function, which says whether a device
    can compile. In its place stands, while torchvision is imported, one that asks the real module
    when it is called. For a process that is starting: another thread that imports the compiler at
    the same moment would get the placeholder.
    """
    if _COMPILER not in sys.modules and "torchvision" not in sys.modules:
        placeholders = {name: _Later(name) for name in (_COMPILER, _UTILS)}
        sys.modules.update(placeholders)
        try:
            import_module("torchvision")
        finally:
            _remove_placeholders()


class _Later(ModuleType):
    """Stands for a module until somebody wants something else of it than `is_compile_supported`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # a package, with no files of its own

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        _remove_placeholders()
        return getattr(import_module(self.__name__), name)

    def is_compile_supported(self, device: str) -> bool:
        """Return what the real module says."""
        _remove_placeholders()
        return bool(import_module(_UTILS).is_compile_supported(device))


def _remove_placeholders() -> None:
    for name in (_COMPILER, _UTILS):
        if isinstance(sys.modules.get(name), _Later):
            del sys.modules[name]
