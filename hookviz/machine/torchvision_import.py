"""Import torchvision without torch's compiler, which it draws in and no pass here needs."""

import sys
from importlib import import_module
from types import ModuleType

_COMPILER, _UTILS = "torch._dynamo", "torch._dynamo.utils"


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
