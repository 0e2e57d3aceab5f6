"""Copy modules that `copy.deepcopy` copies wrongly, by code of their own or of torch's.

A person's ``__deepcopy__`` may return the module itself or build another one anew, a
``__getstate__`` may leave out what a pass needs, and ``__slots__`` are lost in torch's
``__setstate__``. Such a module is copied attribute by attribute. A graph module of torch.fx comes
back in training mode and without what was put on it; that is put right afterwards.
"""

import copy
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from torch import fx, nn

_WAYS = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
_LIBRARIES = ("builtins", "torch", "torchvision", "timm")

_own_ways: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def is_copied_in_its_own_way(module: nn.Module) -> bool:
    """Return whether a person's own code has a say in how this module is copied."""
    kind = type(module)
    if kind not in _own_ways:
        _own_ways[kind] = any(
            not {*_WAYS, "__slots__"}.isdisjoint(vars(base))
            and base.__module__.partition(".")[0] not in _LIBRARIES
            for base in kind.__mro__
        )
    return _own_ways[kind] or "__deepcopy__" in vars(module)


class EmptyCopy:
    """Empty module of the same class, put into `memo` at once and filled at the end."""

    def __init__(self, module: nn.Module, memo: dict[int, Any]) -> None:
        self._module = module
        self._memo = memo
        self._copy = type(module).__new__(type(module))
        memo[id(module)] = self._copy

    def fill(self) -> None:
        """Set copies of all attributes and slots of the original."""
        for key, value in vars(self._module).items():
            vars(self._copy)[key] = copied_or_shared(value, self._memo)
        for slot in slots_of(type(self._module)):
            if hasattr(self._module, slot):
                value = copied_or_shared(getattr(self._module, slot), self._memo)
                object.__setattr__(self._copy, slot, value)


def slots_of(kind: type) -> tuple[str, ...]:
    """Return the attributes that a class keeps in slots, without those that Python adds."""
    names = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            hidden = slot.startswith("__") and not slot.endswith("__")
            names.append(f"_{base.__name__.lstrip('_')}{slot}" if hidden else slot)
    return tuple(slot for slot in names if slot not in ("__dict__", "__weakref__"))


def copied_or_shared(value: Any, memo: dict[int, Any]) -> Any:
    """Copy a value; share it where it can't be copied, as locks and files can't."""
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001 - any class can refuse in its own way
        return value


def repair_graphs(network: nn.Module, copied: nn.Module, memo: dict[int, Any]) -> None:
    """Restore the mode and the attributes that the graph modules of a copy have lost."""
    copies = dict(copied.named_modules())
    for name, module in network.named_modules():
        twin: Any = copies.get(name)
        if not isinstance(module, fx.GraphModule) or twin is None or twin is module:
            continue
        if twin.training != module.training:
            twin.train(module.training)  # torchvision's have a graph for each mode
        inside = dict(twin.named_modules())
        for part_name, part in module.named_modules():
            if part_name in inside:
                inside[part_name].training = part.training
        _fill_in(vars(twin), vars(module), memo)
        for table in ("_parameters", "_buffers", "_modules"):
            _fill_in(getattr(twin, table), getattr(module, table), memo)


def _fill_in(target: dict[str, Any], source: Mapping[str, Any], memo: dict[int, Any]) -> None:
    for key, value in source.items():
        if key not in target:
            target[key] = copied_or_shared(value, memo)
