"""The live parts that there are, found by looking into `hookviz.lessons.parts`."""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from hookviz.lessons import parts as folder
from hookviz.lessons.part import Part


@cache
def parts() -> Mapping[str, Part]:
    """Every live part by its name, in the order of the alphabet."""
    modules = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    found = [import_module(f"{folder.__name__}.{name}").PART for name in modules]
    return MappingProxyType({part.name: part for part in found})


def module_of(part: str) -> str:
    """Name of the module of a part, here and in `hookviz.ui.lessons.parts`."""
    return part.replace("-", "_")
