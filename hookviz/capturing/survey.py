"""What one forward pass of a network runs: its layers in order of execution, with their shapes."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import layers
from hookviz.errors import ModelError, SettingError
from hookviz.hooking import conduct, hooks
from hookviz.hooking.forward_pass import forward_pass, own_shape, pass_without_data, private_replica
from hookviz.hooking.torch_functions import not_followed
from hookviz.types import Address, LayerInfo, Model, ModelInput

_FLOAT_BYTES = 4  # activations are kept as float32
_MOST_SURVEYS = 8  # input shapes, and inputs, per network that are remembered


@dataclass(frozen=True, eq=False)
class Survey:
    """One network at one input shape.

    Attributes:
        calls: how often each module runs, containers included, by name in order of first return.
        nbytes: float32 bytes of everything that each module puts out in one pass.
        layers: every module without parts that runs, in order of execution.
        convs: those of them that are convolutions.
        overwritten: modules whose output something writes into later in the pass, such as an
            in-place ReLU; what a hook holds of them has to be copied at once.
        sequence: the module of every call, in order of return.
        scores: how many class scores the network puts out; 0 where it puts out something else.
        only_computes: whether every image takes this very way, and version counters tell every
            write (see `hookviz.hooking.conduct`).
    """

    calls: Mapping[str, int]
    nbytes: Mapping[str, int]
    layers: tuple[LayerInfo, ...]
    convs: tuple[LayerInfo, ...]
    overwritten: frozenset[str]
    sequence: tuple[str, ...]
    scores: int
    only_computes: bool

    @cached_property
    def hidden(self) -> tuple[LayerInfo, ...]:
        """The layers before the first one whose channels are the classes themselves.

        Such a layer is a convolution with a channel per class, and nothing that has weights or
        another number of channels runs after it: the scores are its maps, pooled.
        """
        last = next((layer for layer in reversed(self.layers) if layer.parameters), None)
        if last is None or not last.kernel_size or not self.scores:
            return self.layers
        ends = self.layers[last.index :]
        alike = all(layer.output_shape[:1] == (self.scores,) for layer in ends)
        return self.layers[: last.index] if alike and last.index else self.layers

    @cached_property
    def turns(self) -> Mapping[tuple[str, int], int]:
        """When each call returned, by layer and call: 0 for the first of the pass."""
        counts: Counter[str] = Counter()
        turns = {}
        for turn, name in enumerate(self.sequence):
            turns[name, counts[name]] = turn
            counts[name] += 1
        return turns


_surveys: WeakKeyDictionary[nn.Module, dict[tuple[int, ...] | str, Survey]] = WeakKeyDictionary()
_lock = threading.Lock()


def list_layers(
    model: Model, *, kind: str = "conv", input_shape: Sequence[int] | None = None
) -> tuple[LayerInfo, ...]:
    """The layers that one forward pass runs, in order of execution, with their shapes.

    Args:
        model: from `load_model` or `wrap`.
        kind: ``"conv"`` for convolution layers, ``"all"`` for every layer without parts.
        input_shape: ``(C, H, W)`` of the input; the model's own input shape by default.

    Raises:
        ModelError: the network can't take an input of that shape.
        SettingError: `kind` is neither of the two.

    >>> model = hookviz.load_model("shapesnet")
    >>> layer = hookviz.list_layers(model)[0]
    >>> layer.name, layer.input_shape, layer.output_shape  # (C, H, W) each
    ('stem.first.conv', (3, 128, 128), (32, 64, 64))
    >>> len(hookviz.list_layers(model)), len(hookviz.list_layers(model, kind="all"))
    (10, 30)
    """
    if kind not in ("conv", "all"):
        raise SettingError(f'kind={kind!r} is neither "conv" nor "all".')
    found = survey(model, tuple(input_shape or own_shape(model)))
    return found.convs if kind == "conv" else found.layers


def survey(model: Model, shape: tuple[int, ...]) -> Survey:
    """What a pass over an input of `shape`, ``(C, H, W)``, runs; remembered per network.

    The pass is made without data, on torch's meta device, which takes milliseconds for the
    largest model. A network whose path depends on values is run on zeros instead; what it runs for
    a certain image tells `survey_input`.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    with _lock:
        known = _surveys.setdefault(model.network, {})
        if shape in known:
            return known[shape]
    surveyed = pass_without_data(model, shape, _pass_over)
    conduct.take_down(model.network, only_computes=surveyed.only_computes)
    return _remember(known, shape, surveyed)


def steps_after(surveyed: Survey, layer: str) -> tuple[Address, ...]:
    """The calls of other layers between a conv layer's first call and the next conv layer's.

    Those that put out maps, ``(C, H, W)``, of as many channels: batch norm, activation, pooling,
    dropout, as the pass runs them. What a network computes between modules, such as the sum with a
    shortcut, shows in the next of them.
    """
    layers = {info.name: info for info in surveyed.layers}
    convs = {info.name for info in surveyed.convs}
    if (layer, 0) not in surveyed.turns or len(layers[layer].output_shape) != 3:
        return ()
    calls = sorted(surveyed.turns, key=surveyed.turns.__getitem__)
    steps = []
    for name, call in calls[surveyed.turns[layer, 0] + 1 :]:
        if name in convs:
            break
        shape = layers[name].output_shape if name in layers else ()
        if len(shape) == 3 and shape[0] == layers[layer].output_shape[0]:
            steps.append(Address(name, call))
    return tuple(steps)


def survey_input(model: Model, model_input: ModelInput) -> Survey:
    """What a pass over this very input runs.

    It is `survey` of the input's shape, but for a network whose path may depend on values: that is
    run once on the input itself.

    Raises:
        ModelError: the network can't take this input.
    """
    with suppress(ModelError):  # where only zeros fail, the input still may not
        general = survey(model, tuple(model_input.tensor.shape[1:]))
        if general.only_computes:
            return general
    with _lock:
        known = _surveys.setdefault(model.network, {})
        if model_input.digest in known:
            return known[model_input.digest]
    with private_replica(model) as replica:
        surveyed = _pass_over(
            replica, model_input.tensor, lambda images: forward_pass(model, replica, images)
        )
    return _remember(known, model_input.digest, surveyed)


def _remember(
    known: dict[tuple[int, ...] | str, Survey], key: tuple[int, ...] | str, surveyed: Survey
) -> Survey:
    with _lock:
        while len(known) >= _MOST_SURVEYS:
            known.pop(next(iter(known)))
        known[key] = surveyed
    return surveyed


def _pass_over(
    network: nn.Module, images: Tensor, run: Callable[[Tensor], Any] | None = None
) -> Survey:
    modules = dict(network.named_modules())
    modules.pop("")
    seen: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
    recorder = hooks.Recorder()
    watched = conduct.Conduct(network)

    def see(call: hooks.Call) -> None:
        with not_followed():
            look(call)

    def look(call: hooks.Call) -> None:
        recorder.see(call)
        outputs = [tensor for _, tensor in hooks.tensors_in(call.output)]
        inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
        module = modules[call.layer]
        seen.append(
            (
                call.layer,
                _shape_of_one(inputs[0], module) if inputs else (),
                _shape_of_one(outputs[0], module) if outputs else (),
                sum(tensor.numel() for tensor in outputs) * _FLOAT_BYTES,
            )
        )

    with hooks.observe(network, modules, see), watched:
        output = (run or network)(images)

    calls: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    listed: list[LayerInfo] = []
    leaves = layers.leaf_names(network)
    counts = layers.parameter_counts(network, leaves.intersection(name for name, *_ in seen))
    for name, input_shape, output_shape, size in seen:
        calls[name] = calls.get(name, 0) + 1
        nbytes[name] = nbytes.get(name, 0) + size
        if calls[name] == 1 and name in leaves:
            listed.append(
                layers.describe(name, modules[name], input_shape, output_shape, counts[name])
            )
    numbered = layers.numbered(listed, calls)
    kept = frozenset(layers.conv_names(network))
    return Survey(
        MappingProxyType(calls),
        MappingProxyType(nbytes),
        numbered,
        layers.numbered((layer for layer in numbered if layer.name in kept), calls),
        recorder.overwritten_layers(),
        tuple(name for name, *_ in seen),
        output.shape[1] if isinstance(output, Tensor) and output.ndim == 2 else 0,
        only_computes=images.is_meta and watched.only_computed,
    )


def _shape_of_one(tensor: Tensor, module: nn.Module) -> tuple[int, ...]:
    """A tensor's shape without the batch, which a convolution may have been called without."""
    unbatched = isinstance(module, _ConvNd) and tensor.ndim == len(module.kernel_size) + 1
    return tuple(tensor.shape if unbatched else tensor.shape[1:])
