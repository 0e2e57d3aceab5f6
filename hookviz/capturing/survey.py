"""What one forward pass of a network runs: its layers in order of execution, with their shapes."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.errors import SettingError
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import own_shape, place_of, refused
from hookviz.types import LayerInfo, Model

_FLOAT_BYTES = 4  # activations are kept as float32
_MOST_SHAPES = 8  # input shapes per network that are remembered


@dataclass(frozen=True, eq=False, slots=True)
class Survey:
    """One network at one input shape.

    Attributes:
        calls: how often each module runs, containers included, by name in order of first return.
        nbytes: float32 bytes of everything that each module puts out in one pass.
        layers: every module without parts that runs, in order of execution.
        convs: those of them that are convolutions.
        overwritten: modules whose output something writes into later in the pass, such as an
            in-place ReLU; what a hook holds of them has to be copied at once.
    """

    calls: Mapping[str, int]
    nbytes: Mapping[str, int]
    layers: tuple[LayerInfo, ...]
    convs: tuple[LayerInfo, ...]
    overwritten: frozenset[str]


_surveys: WeakKeyDictionary[nn.Module, dict[tuple[int, ...], Survey]] = WeakKeyDictionary()
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
    largest model. A network whose path depends on values is run on zeros instead.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    with _lock:
        known = _surveys.setdefault(model.network, {})
        if shape in known:
            return known[shape]
    try:
        made = _pass_over(
            replicas.shapes_only(model.network),
            torch.empty(1, *shape, device="meta", dtype=place_of(model.network)[1]),
        )
    except Exception:  # noqa: BLE001 - whatever meta tensors can't do, real ones decide
        made = _real_pass(model, shape)
    with _lock:
        while len(known) >= _MOST_SHAPES:
            known.pop(next(iter(known)))
        known[shape] = made
    return made


def _real_pass(model: Model, shape: tuple[int, ...]) -> Survey:
    with replicas.borrow(model.network) as replica:
        try:
            return _pass_over(replica, torch.zeros(1, *shape).to(*place_of(replica)))
        except Exception as error:
            raise refused(model, shape, error) from error


def _pass_over(network: nn.Module, blank: Tensor) -> Survey:
    modules = dict(network.named_modules())
    modules.pop("")
    seen: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
    recorder = hooks.Recorder()

    def see(call: hooks.Call) -> None:
        recorder.see(call)
        outputs = [tensor for _, tensor in hooks.tensors_in(call.output)]
        inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
        seen.append(
            (
                call.layer,
                tuple(inputs[0].shape[1:]) if inputs else (),
                tuple(outputs[0].shape[1:]) if outputs else (),
                sum(tensor.numel() for tensor in outputs) * _FLOAT_BYTES,
            )
        )

    with torch.no_grad(), hooks.observe(network, modules, see):
        network(blank)

    calls: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    listed: list[LayerInfo] = []
    leaves = layers.leaf_names(network)
    for name, input_shape, output_shape, size in seen:
        calls[name] = calls.get(name, 0) + 1
        nbytes[name] = nbytes.get(name, 0) + size
        if calls[name] == 1 and name in leaves:
            listed.append(layers.describe(name, modules[name], input_shape, output_shape))
    numbered = layers.numbered(listed, calls)
    kept = frozenset(layers.conv_names(network))
    return Survey(
        MappingProxyType(calls),
        MappingProxyType(nbytes),
        numbered,
        layers.numbered((layer for layer in numbered if layer.name in kept), calls),
        recorder.overwritten_layers(),
    )
