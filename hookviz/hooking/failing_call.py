"""Find the layer at which a pass fails, with its inputs and the layers before it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.pooling import _AvgPoolNd, _MaxPoolNd

from hookviz.errors import shorten
from hookviz.hooking import hooks
from hookviz.hooking.modules import named_modules
from hookviz.language.saying import joined, say, say_count
from hookviz.wording import times

_MOST_NAMED = 3  # calls in a message
_SIDES = ("D", "H", "W")
_POOLING = "torch.nn.modules.pooling"
_CLEAR = (RuntimeError, ValueError)  # errors whose message is clear without their name


@dataclass(frozen=True, slots=True)
class FailingCall:
    """Module call in which a pass failed; ``str()`` begins a sentence about it.

    Attributes:
        layer: the module's dotted path; empty where the network's own code failed, between layers.
        kind: its class.
        shapes: of the tensors that it was given, batch included.
        expected: the inputs it takes, in words, where its own numbers tell; else empty.
        before: the layers without parts that had returned by then, in order, a name for each call.
    """

    layer: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    expected: str
    before: tuple[str, ...]

    def __str__(self) -> str:
        shapes = " and ".join(times(shape) or say("one number") for shape in self.shapes) or say(
            "no tensor"
        )
        where = (
            f"{self.layer} ({self.kind})"
            if self.layer
            else say("its own code ({kind})", kind=self.kind)
        )
        takes = say(", which takes {expected},", expected=self.expected) if self.expected else ""
        last = joined(self.before[-_MOST_NAMED:])
        more = (
            say(" and {count} before", count=len(self.before) - _MOST_NAMED)
            if len(self.before) > _MOST_NAMED
            else ""
        )
        ran = (
            say("after {layers}{rest}", layers=last, rest=more)
            if last
            else say("before any other layer")
        )
        return say(
            "{layer}{requirement} fails on {inputs}, {position}",
            layer=where,
            requirement=takes,
            inputs=shapes,
            position=ran,
        )


def failing_call(network: nn.Module, run: Callable[[], Any]) -> FailingCall | None:
    """Return the innermost module call that was running when `run` failed.

    None where `run` doesn't fail, or fails outside of the network. What it raises is not raised
    here; a `BaseException` that is no `Exception` is.
    """
    modules = dict(named_modules(network))
    running: list[tuple[str, tuple[tuple[int, ...], ...]]] = []
    failed: list[tuple[str, tuple[tuple[int, ...], ...]]] = []
    returned: list[str] = []

    def begin(call: hooks.Call) -> None:
        failed.clear()  # whatever failed before, the network's own code caught it
        # Shapes and not tensors: a layer may write into them before it fails.
        shapes = tuple(tuple(tensor.shape) for _, tensor in hooks.tensors_in(call.inputs))
        running.append((call.layer, shapes))

    def leave(_call: hooks.Call) -> None:
        failed.append(running.pop())

    def succeed(call: hooks.Call) -> None:
        failed.clear()
        if not any(modules[call.layer].children()):
            returned.append(call.layer)

    with (
        hooks.before(network, modules, begin),
        hooks.observe(network, modules, leave, always_call=True),
        hooks.observe(network, modules, succeed),
    ):
        try:
            run()
        except Exception:  # noqa: BLE001 - whatever it is, the caller has seen it already
            if not failed:
                return None
            layer, shapes = failed[0]
            module = modules[layer]
            return FailingCall(
                layer, type(module).__name__, shapes, expected(module), tuple(returned)
            )
    return None


def expected(module: nn.Module) -> str:
    """Return the inputs that a module of torch's takes, in words; empty for other modules.

    >>> expected(nn.Conv2d(3, 8, 5))
    '3 channels in N×C×H×W, of at least 5×5 with padding'
    """
    for kind, takes in _TAKES.items():
        if isinstance(module, kind):
            return takes(module)
    return ""


def _conv(module: Any) -> str:
    takes = say(
        "{channels} in {axes}",
        channels=_channels(module.in_channels),
        axes=_form(len(module.kernel_size)),
    )
    if module.transposed:
        return takes
    return f"{takes}, {_least(module.kernel_size, module.dilation)}"


def _pool(module: Any) -> str:
    dims = int(type(module).__name__[-2]) if type(module).__module__ == _POOLING else 0
    sizes, gaps = (
        each if isinstance(each, tuple) else (each,) * dims
        for each in (module.kernel_size, getattr(module, "dilation", 1))
    )
    return say("maps {sizes}", sizes=_least(sizes, gaps)) if dims else ""


def _least(sizes: Sequence[int], dilations: Sequence[int]) -> str:
    """Return the smallest size of maps that a window fits into, in words."""
    pairs = zip(sizes, dilations, strict=True)
    reach = [dilation * (size - 1) + 1 for size, dilation in pairs]
    return say("of at least {size} with padding", size=times(reach))


_TAKES: dict[type[nn.Module], Callable[[Any], str]] = {
    _ConvNd: _conv,
    _MaxPoolNd: _pool,
    _AvgPoolNd: _pool,
    _NormBase: lambda module: _channels(module.num_features),
    nn.GroupNorm: lambda module: _channels(module.num_channels),
    nn.LayerNorm: lambda module: say(
        "{shape} as the last dimensions", shape=times(module.normalized_shape)
    ),
    nn.Linear: lambda module: say(
        "{count:,} numbers along the last dimension", count=module.in_features
    ),
    nn.RNNBase: lambda module: say(
        "{count:,} numbers along the last dimension", count=module.input_size
    ),
    nn.Embedding: lambda module: say(
        "whole numbers from 0 to {largest:,}", largest=module.num_embeddings - 1
    ),
    nn.MultiheadAttention: lambda module: say(
        "vectors of {count:,} numbers", count=module.embed_dim
    ),
}


def _channels(count: int) -> str:
    return say_count("{count:,} channel", "{count:,} channels", count)


def _form(dims: int) -> str:
    return "×".join(("N", "C", *_SIDES[-dims:]))


def first_line(error: Exception) -> str:
    """Return an error's own words in short, after its class where they alone say little.

    >>> first_line(KeyError("mask")), first_line(ValueError("there are no boxes"))
    ("KeyError: 'mask'", 'there are no boxes')
    """
    message = shorten(str(error).strip().partition("\n")[0], 200)
    kind = type(error).__name__
    if message and isinstance(error, _CLEAR):
        return message
    return f"{kind}: {message}" if message else kind
