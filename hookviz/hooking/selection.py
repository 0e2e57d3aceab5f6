"""Select layers of a person's network by name, pattern, type, module or predicate."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from torch import nn
from torch.jit import ScriptModule

from hookviz.errors import HookVizError, ModelError, SettingError, UnknownLayerError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.function_calls import is_function, nearest_module, no_module
from hookviz.hooking.layer_warnings import unseen_layers
from hookviz.hooking.modules import named_modules, network_of, plain_name
from hookviz.types import Model

Selector = str | re.Pattern[str] | type[nn.Module] | nn.Module | Callable[[str, nn.Module], bool]
"""A name, pattern, type, module or predicate: see `select`."""

Layers = Selector | Iterable[Selector] | None
"""A selector, or several of which each adds its layers."""

PATTERN = frozenset("*?[")
"""The signs that make a text a pattern."""


def select(
    network: nn.Module | Model, layers: Layers = None, exclude: Layers = ()
) -> tuple[str, ...]:
    r"""Return the names of the chosen layers, in the order of ``network.named_modules()``.

    They are names in the module that hooks sit on: of a wrapper, such as `torch.compile` makes, in
    the one behind it. A name that is given may have what the wrapper adds, such as ``_orig_mod.``.

    Args:
        network: a module with or without layers, or a `Model`; ``""`` is the name of itself.
        layers: a name such as ``"layer1.0.conv1"``; a pattern such as ``"layer3.*.conv?"``, in
            which ``*`` is anything, dots included, and ``?`` one sign; a compiled expression, such
            as ``re.compile(r"layer[34]\..*")``, that fits the whole name; a type such as
            ``nn.Conv2d``, its subclasses included; a module of the network; a function of name
            and module that says True; several of those, an empty list for none; or None for every
            layer, blocks included. A module with two names goes by the first, unless it is asked
            for by name.
        exclude: of the same kinds; not these. A type or a function may find nothing.

    Raises:
        UnknownLayerError: there is no layer of that name, pattern or type, with the nearest.
        SettingError: something else is given, such as a function of the code that is listed as a
            layer; or no layer is left.
        ModelError: `network` is no module, or a TorchScript program, where hooks are blind.
    """
    wrapped, network = network, network_of(network)
    _check_seen(network)
    every = dict(named_modules(network, remove_duplicate=False))
    included, excluded = (
        [_plain(selector, every, wrapped) for selector in several(each)]
        for each in (layers, exclude)
    )
    if len(every) == 1 and (layers is None or any(selector != "" for selector in included)):
        raise SettingError(f'This {type(network).__name__} has no layers; its own name is "".')
    chosen: set[str] = set()
    if layers is None:
        chosen = {name for name, _ in named_modules(network) if name}
    for selector in included:
        named = isinstance(selector, str) and selector in every
        known = set() if named else {id(every[name]) for name in chosen}
        chosen |= _unique(every, _matching(network, every, selector), known)
    without = {
        id(every[name])
        for selector in excluded
        for name in _matching(network, every, selector, may_be_none=True)
    }
    left = tuple(name for name in every if name in chosen and id(every[name]) not in without)
    if not left and (included or layers is None):
        raise SettingError(
            f"No layer of this {type(network).__name__} is left to look at: all that are chosen "
            "are excluded."
        )
    return left


@contextmanager
def chosen_layers(
    instrument: str, network: nn.Module | Model, layers: Layers, exclude: Layers
) -> Iterator[tuple[nn.Module, tuple[str, ...]]]:
    """Yield the module to put hooks on and the names of the chosen layers; see `select`.

    At the end of the block one `RuntimeWarning` names those that did not run in it.
    """
    layers = None if layers is None else several(layers)
    module, chosen = network_of(network), select(network, layers, exclude)
    with (
        unseen_layers(instrument, network, chosen, asked_by_name(network, layers)) as ran,
        hooks.before(module, ("", *chosen) if chosen else (), lambda call: ran.add(call.layer)),
    ):
        yield module, chosen


def asked_by_name(network: nn.Module | Model, layers: Layers) -> frozenset[str]:
    """Return the names among the selectors, without the additions of wrappers."""
    names = (selector for selector in several(layers) if isinstance(selector, str))
    return frozenset(plain_name(name, network) for name in names)


def several(layers: Layers) -> tuple[Any, ...]:
    """Return selectors one by one."""
    if layers is None:
        return ()
    if isinstance(layers, str | re.Pattern | type | nn.Module) or not isinstance(layers, Iterable):
        return (layers,)
    return tuple(layers)


def _plain(selector: Any, every: Mapping[str, nn.Module], network: nn.Module | Model) -> Any:
    if isinstance(selector, str) and selector not in every:
        return plain_name(selector, network)
    return selector


def _unique(every: Mapping[str, nn.Module], names: Iterable[str], known: set[int]) -> set[str]:
    """Return the names without those of a module that was chosen under another name."""
    selected = set()
    for name in names:
        if id(every[name]) not in known:
            known.add(id(every[name]))
            selected.add(name)
    return selected


def _matching(
    network: nn.Module, every: Mapping[str, nn.Module], selector: Any, *, may_be_none: bool = False
) -> list[str]:
    layers = {name: module for name, module in every.items() if name}
    if isinstance(selector, str | re.Pattern):
        names = names_matching(every, selector)
        if not names and not (may_be_none and isinstance(selector, re.Pattern)):
            raise _unknown(network, every, _written(selector))
    elif isinstance(selector, nn.Module):
        either = (selector, network_of(selector))
        names = [name for name, module in every.items() if any(module is one for one in either)][:1]
        if not names:
            raise SettingError(
                f"This {type(selector).__name__} is no part of the {type(network).__name__}; give "
                "the network that it belongs to."
            )
    elif isinstance(selector, type) and issubclass(selector, nn.Module):
        names = [name for name, module in layers.items() if isinstance(module, selector)]
        if not names and not may_be_none:
            kinds = {type(module).__name__ for module in layers.values()}
            what = f"kind of layer in this {type(network).__name__}"
            raise UnknownLayerError(what, selector.__name__, kinds)
    elif callable(selector) and not isinstance(selector, type):
        names = [name for name, module in layers.items() if selector(name, module)]
        if not names and not may_be_none:
            raise SettingError(
                f"{getattr(selector, '__name__', 'The function')} says True of no layer of this "
                f"{type(network).__name__}. It is given each name and module, such as "
                f"{next(iter(layers), '')!r}."
            )
    else:
        raise SettingError(
            f"{shorten(repr(selector))} chooses no layers. A name does, a pattern such as "
            "'layer3.*.conv?', a type such as nn.Conv2d, a module, or a function of both."
        )
    return names


def _written(selector: str | re.Pattern[str]) -> str:
    return selector if isinstance(selector, str) else selector.pattern


def names_matching(every: Iterable[str], selector: str | re.Pattern[str]) -> list[str]:
    """Return the name itself if it is there, or those that a pattern or an expression fits."""
    if isinstance(selector, re.Pattern):
        return [name for name in every if name and selector.fullmatch(name)]
    if selector in every:
        return [selector]
    return [name for name in every if name and fnmatchcase(name, selector)]


def _unknown(network: nn.Module, every: Mapping[str, nn.Module], name: str) -> HookVizError:
    where = f"this {type(network).__name__}"
    if is_function(name) and nearest_module(name) in every:
        return no_module(name, where, nearest_module(name))
    return UnknownLayerError(f"layer in {where}", name, filter(None, every))


def _check_seen(network: nn.Module) -> None:
    for name, module in network.named_modules():
        if isinstance(module, ScriptModule):
            raise ModelError(
                f"{name or f'This {type(network).__name__}'} is a TorchScript program, whose "
                "layers are not called from Python, so no hook would see them. Use the module that "
                "it was made of."
            )
