"""Compute class scores: of a batch, split into channels' votes, or with every ReLU switched off.

`class_vote` is for networks that end with global average pooling: they bring the last maps to one
number a channel, their mean, and multiply these numbers by a matrix. The score of a class is
``Σ_c weight[class, c] · mean_c + bias[class]``. Whether a network ends so is not read from its code
but tried: the sum over the means of its last maps has to be the scores.

`without_relu` finds ReLUs as the pass calls them, as modules and as functions of torch alike, on a
private replica. It does not see into a compiled program (TorchScript).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.capturing import engine
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError, SettingError, nearest_names, shorten
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.torch_functions import EveryFunction, function_name
from hookviz.language.saying import say
from hookviz.outputs.answer import Reading, Scores
from hookviz.outputs.reading import no_scores, read_scores
from hookviz.types import LayerInfo, Model, ModelInput


def class_scores(
    model: Model,
    replica: nn.Module,
    images: Tensor,
    reporter: ProgressReporter | None = None,
    *,
    count: int | None = None,
) -> Scores:
    """Return the scores of every image, ``(N, classes)``, with what they are.

    On the network's device and in its precision; with a graph if gradients are on.

    `images` are ``(N, C, H, W)``; `count` is N where hooks change how many images there are.

    Raises:
        ModelError: the network can't take these images, or its output has no row of scores.
    """
    output = forward_pass(model, replica, images, reporter)
    return scores_in(model, output, len(images) if count is None else count)


def scores_in(model: Model, output: Any, count: int) -> Scores:
    """Return the scores in a network's output, ``(count, classes)``, with what they are.

    Raises:
        ModelError: there are none.
    """
    scores = read_scores(model.output, output, count, len(model.categories))
    if scores is None:
        raise ModelError(no_scores(model.title, output, count))
    return scores


def class_number(
    value: Any, names: Sequence[str], count: int, title: str, *, parameter: str = "target"
) -> int:
    """Return the number of a class.

    `value` is the number, also as text, or the name; `names` are the classes, as far as the network
    has some, and `count` is how many scores it puts out. `title` and `parameter` name the network
    and the choice in the message.

    Raises:
        SettingError: the network lacks that class; the nearest name is named.

    >>> from hookviz.explaining.scores.scoring import class_number
    >>> class_number("star", ("circle", "star"), 2, "ours"), class_number("0", (), 2, "ours")
    (1, 0)
    """
    if isinstance(value, str) and not value.isdecimal():
        if value in names:
            return list(names).index(value)
        near = nearest_names(value, names)
        hint = say(" Did you mean {names}?", names=" or ".join(map(repr, near))) if near else ""
        raise SettingError(
            say(
                "{model} knows no class {value!r}.{hint}",
                model=title,
                value=shorten(value),
                hint=hint,
            )
        )
    try:
        number = -1 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):  # Python reads up to 4,300 digits
        number = -1
    if not 0 <= number < count:
        raise SettingError(
            say(
                "{name}={value} is not {expected}.",
                name=parameter,
                value=shorten(repr(value)),
                expected=say("a class of {model}: 0 to {last}", model=title, last=count - 1),
            )
        )
    return number


_MAX_TRIED = 4  # last layers of maps whose means are tried
_TOLERANCE = 1e-4  # of the largest number, as float32 sums in another order differ


@dataclass(frozen=True, eq=False, slots=True)
class ClassVote:
    """Votes of the last maps' channels for every class.

    Attributes:
        layer: the layer whose maps are averaged.
        rectified: whether the network applies a ReLU to them before, as some do without a module.
        head: the linear layer.
        maps: the averaged maps, ``(C, H, W)``.
        means: one number a channel, ``(C,)``.
        weights: ``(classes, C)``.
        bias: ``(classes,)``; zeros where the layer adds none.
        scores: before the softmax, ``(classes,)``.
    """

    layer: str
    rectified: bool
    head: str
    maps: Tensor = field(repr=False)
    means: Tensor = field(repr=False)
    weights: Tensor = field(repr=False)
    bias: Tensor = field(repr=False)
    scores: Tensor = field(repr=False)

    def contributions(self, target: int) -> Tensor:
        """Return what each channel adds to a class's score, ``(C,)``; with the bias they sum to it.

        Raises:
            IndexError: the network lacks that class.
        """
        return self.weights[target] * self.means


def class_vote(
    model: Model, model_input: ModelInput, *, cache: ByteCache | None = None
) -> ClassVote | None:
    """Find the last channels' votes on this input; None where the network does not end in this way.

    `cache` is that of a session, for captures.

    Raises:
        ModelError: the network can't take this input.
    """
    trace = input_trace(model, model_input)
    if not trace.scores or not trace.layers:
        return None
    head = trace.layers[-1]
    with private_replica(model) as network:
        module = network.get_submodule(head.name)
        if not isinstance(module, nn.Linear) or head.calls > 1 or len(head.input_shape) != 1:
            return None
        weights = module.weight.detach().float().cpu()
        zeros = torch.zeros(len(weights))
        bias = zeros if module.bias is None else module.bias.detach().float().cpu()
    candidates = {info.name for info in trace.maps if _fits(info, head)}
    names = [name for name in trace.calls if name in candidates][-_MAX_TRIED:]  # the last to end
    capture = engine.capture(model, model_input, [*names, head.name], cache=cache)
    scores = capture[head.name].values
    if capture.logits is None or not torch.equal(scores, capture.logits):
        return None  # the network changes the scores after it
    for name in reversed(names):
        for rectified, maps in _with_and_without_relu(capture[name].values):
            means = maps.mean((1, 2))
            if _agree(weights @ means + bias, scores):
                return ClassVote(name, rectified, head.name, maps, means, weights, bias, scores)
    return None


def _fits(info: LayerInfo, head: LayerInfo) -> bool:
    """Return whether the means of a layer's maps could be the head's input, by their shapes."""
    shape = info.output_shape
    return info.calls == 1 and shape[:1] == head.input_shape and min(shape[1:]) > 1


def _with_and_without_relu(maps: Tensor) -> Iterator[tuple[bool, Tensor]]:
    yield False, maps
    if (maps < 0).any():
        yield True, F.relu(maps)


def _agree(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs().max() <= _TOLERANCE * other.abs().max())


_RELUS = {
    "relu": "ReLU",
    "relu6": "ReLU6",
    "leaky_relu": "LeakyReLU",
    "prelu": "PReLU",
    "rrelu": "RReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "gelu": "GELU",
    "silu": "SiLU",
    "mish": "Mish",
    "hardswish": "Hardswish",
    "softplus": "Softplus",
}
"""Names of the torch functions that are switched off, and what they are called: ReLU, its kin."""

_CLAMPS = ("clamp", "clip", "hardtanh", "clamp_min")
"""Functions that are a ReLU where they cut at 0 below."""


@dataclass(frozen=True, eq=False, slots=True)
class WithoutRelu:
    """Class scores of a pass whose ReLUs did nothing.

    Attributes:
        scores: before the softmax, ``(classes,)``.
        switched_off: how many calls of each kind were found, by what it is called.
        reading: what the scores are.
    """

    scores: Tensor = field(repr=False)
    switched_off: Mapping[str, int]
    reading: Reading


def without_relu(model: Model, model_input: ModelInput) -> WithoutRelu:
    """Compute the class scores of an input with every ReLU and its kin switched off.

    Nothing is switched off, and the scores are the network's own, where none is found.

    Raises:
        ModelError: the network can't take this input, or puts out no class scores.
    """
    with private_replica(model) as replica, _ReluBypass() as bypass:
        found = class_scores(model, replica, model_input.tensor)
    scores = found.values[0].detach().float().cpu()
    return WithoutRelu(scores, dict(bypass.found), found.reading)


class _ReluBypass(EveryFunction):
    """Makes each ReLU of a pass an identity, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        kind = _relu_kind(func, args, kwargs)
        if not kind:
            return func(*args, **kwargs)
        self.found[kind] += 1
        return args[0] if args else kwargs["input"]


def _relu_kind(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return what a torch function is called if it is a ReLU; empty if it is none."""
    name = function_name(func)
    if name not in _CLAMPS:
        return _RELUS.get(name, "")
    named = next((kwargs[key] for key in ("min", "min_val") if key in kwargs), None)
    least = args[1] if len(args) > 1 else named
    if not isinstance(least, int | float) or least != 0:
        return ""
    highest = args[2] if len(args) > 2 else kwargs.get("max", kwargs.get("max_val"))
    if highest is None:
        return "ReLU"
    return "ReLU6" if highest == 6 else ""
