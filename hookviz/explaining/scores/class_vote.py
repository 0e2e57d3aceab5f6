"""Split a class score into the channels' votes, for networks that end with global average pooling.

Many networks bring the last maps to one number a channel, their mean, and multiply these numbers by
a matrix: the score of a class is ``Σ_c weight[class, c] · mean_c + bias[class]``. Whether a network
ends so is not read from its code but tried: the sum over the means of its last maps has to be the
scores.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.capturing import engine
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import input_trace
from hookviz.hooking.forward_pass import private_replica
from hookviz.types import LayerInfo, Model, ModelInput

_MAX_TRIED = 4  # last layers of maps whose means are tried
_TOLERANCE = 1e-4  # of the largest number, as float32 sums in another order differ


@dataclass(frozen=True, eq=False, slots=True)
class ClassVote:
    """Votes of the last maps' channels for every class.

    Attributes:
        layer: the layer whose maps are averaged.
        rectified: whether the network applies a ReLU to them before, as some do without a module.
        head: the linear layer.
        maps: what is averaged, ``(C, H, W)``.
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
            IndexError: there is no such class.
        """
        return self.weights[target] * self.means


def class_vote(
    model: Model, model_input: ModelInput, *, cache: ByteCache | None = None
) -> ClassVote | None:
    """Find the last channels' votes on this input; None where the network does not end in this way.

    Args:
        model: the model.
        model_input: what the network is given.
        cache: a session's cache, used for captures.

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
