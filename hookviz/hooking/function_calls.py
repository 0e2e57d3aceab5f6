"""Observe the activations and poolings that a network's code calls as functions.

``torch.relu(self.conv1(x))`` has no module for a hook. The call is named after the block whose code
makes it and the layer that returned last there: ``"layer1.0.relu() after conv1"``. Functions that a
layer calls itself, as `torch.nn.ReLU` does, are part of that layer and not listed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import nn

from hookviz.errors import SettingError
from hookviz.hooking import hooks
from hookviz.hooking.modules import named_modules
from hookviz.hooking.torch_functions import EveryFunction, function_name, not_followed
from hookviz.language.saying import say

See = Callable[[hooks.Call], object]

KINDS: Mapping[str, str] = {
    **{kind.lower(): kind for kind in ("ReLU", "ReLU6", "PReLU", "RReLU", "ELU", "SELU", "CELU")},
    **{kind.lower(): kind for kind in ("GELU", "SiLU", "Mish", "Softplus", "Softsign", "Sigmoid")},
    **{kind.lower(): kind for kind in ("LogSigmoid", "Hardsigmoid", "Hardswish", "Hardtanh")},
    **{kind.lower(): kind for kind in ("Hardshrink", "Softshrink", "Tanhshrink", "Tanh")},
    "leaky_relu": "LeakyReLU",
    "log_sigmoid": "LogSigmoid",
    **{
        f"{prefix}{what}_pool{sides}d": f"{kind}{what.title()}Pool{sides}d"
        for prefix, kind in (("", ""), ("adaptive_", "Adaptive"))
        for what in ("max", "avg")
        for sides in (1, 2, 3)
    },
}
"""Class of module that computes the same, by the `function_name` of each listed function."""

TORCH_ATTENTION = (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
"""Blocks of torch's own that compute differently under a function mode."""

_AT_THE_START, _AFTER = "at the start", "after "  # where in a block a function is called
_WITH_INDICES = "_with_indices"  # ends the name of a max pooling that returns them as well


class _Frame(NamedTuple):
    """Module that is running, and the layer that returned last in it."""

    name: str
    returned: list[str]


class _Running:
    """Modules that are running, the innermost last."""

    def __init__(self, quiet: frozenset[str]) -> None:
        self._quiet = quiet
        self._frames = [_Frame("", [])]

    def enter(self, call: hooks.Call) -> None:
        self._frames.append(_Frame(call.layer, []))

    def leave(self, call: hooks.Call) -> None:
        while any(frame.name == call.layer for frame in self._frames[1:]):
            if self._frames.pop().name == call.layer:
                break
        self._frames[-1].returned[:] = [call.layer]

    def is_in_a_layer(self) -> bool:
        return any(frame.name in self._quiet for frame in self._frames)

    def name_of(self, function: str) -> str:
        """Name a call of the function by where the pass is now."""
        block, returned = self._frames[-1]
        after = _AT_THE_START
        if returned:
            block, _, short = returned[-1].rpartition(".")
            after = f"{_AFTER}{short}"
        return f"{block}.{function}() {after}" if block else f"{function}() {after}"


class _Functions(EveryFunction):
    """Mode in which each listed function is seen, before it computes and after."""

    def __init__(self, running: _Running, before: See, after: See) -> None:
        super().__init__()
        self._running, self._before, self._after = running, before, after
        self._counts = Counter[str]()

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        function = function_name(func).removesuffix(_WITH_INDICES)
        if function not in KINDS or self._running.is_in_a_layer():
            return func(*args, **kwargs)
        name = self._running.name_of(function)
        inputs = (*args, *kwargs.values())
        call = hooks.Call(name, self._counts[name], inputs, None, tuple(kwargs))
        self._counts[name] += 1
        with not_followed():
            self._before(call)
        output = func(*args, **kwargs)
        with not_followed():
            self._after(hooks.Call(name, call.index, inputs, output, call.names))
        return output


def kind_of_function(name: str) -> str:
    """Return the class of module that computes the same as a listed function.

    >>> kind_of_function("layer1.0.relu() after conv1")
    'ReLU'
    """
    return KINDS[name.partition("()")[0].rpartition(".")[2]]


def is_function(name: str) -> bool:
    """Return whether a listed layer is a function, by its name."""
    return f"() {_AFTER}" in name or name.endswith(f"() {_AT_THE_START}")


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a listed function into the function and the position of its call.

    >>> split_name("layer1.0.relu() after conv1")
    ('relu', 'after layer1.0.conv1')
    >>> split_name("layer1.0.relu() at the start")
    ('relu', 'in layer1.0')
    """
    before, _, where = name.partition("() ")
    block, _, function = before.rpartition(".")
    if where == _AT_THE_START:
        return function, f"in {block}"
    layer = ".".join(filter(None, (block, where.removeprefix(_AFTER))))
    return function, f"{_AFTER}{layer}"


def nearest_module(name: str) -> str:
    """Return the module beside a listed function: the one it follows, or the block that calls it.

    >>> nearest_module("layer1.0.relu() after conv1"), nearest_module("layer1.relu() at the start")
    ('layer1.0.conv1', 'layer1')
    """
    return split_name(name)[1].partition(" ")[2]


def no_module(name: str, where: str, nearest: str) -> SettingError:
    """Return the error for a listed function where a module is needed; `where` is the network."""
    return SettingError(
        say(
            "{name!r} is a function that the code of {model} calls. `capture` and the grid show "
            "what it puts out; here a module is needed, on which a hook can sit. The nearest one "
            "is {nearest!r}.",
            name=name,
            model=where,
            nearest=nearest,
        )
    )


@contextmanager
def observe_functions(
    network: nn.Module,
    quiet: frozenset[str],
    after: See,
    before: See = lambda _call: None,
) -> Iterator[None]:
    """Call `after` after every call of a listed function in the network's own code.

    A network with torch's own attention is not observed: it would compute differently.

    Args:
        network: observed in the block.
        quiet: names of its layers, whose own functions are part of them.
        after: called with the call and its output, as a forward hook is.
        before: called before the function runs and can overwrite its input.
    """
    if any(isinstance(module, TORCH_ATTENTION) for module in network.modules()):
        yield
        return
    running = _Running(quiet)
    names = [name for name, _ in named_modules(network) if name]
    with (
        hooks.before(network, names, running.enter),
        hooks.observe(network, names, running.leave, always_call=True),
        _Functions(running, before, after),
    ):
        yield
