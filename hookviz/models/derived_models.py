"""Make models from a model: edited layers, other or random weights, a copied network.

The model itself is not changed.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, SettingError, UnknownModelError, shorten
from hookviz.hooking import network_state
from hookviz.hooking.edits import as_edit
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.network_state import is_shared, share
from hookviz.hooking.own_network import locked, replaced_tensors
from hookviz.hooking.selection import Layers, select
from hookviz.language.saying import joined, say
from hookviz.models import architectures, catalog, networks
from hookviz.models.wrapping import as_model
from hookviz.types import Model
from hookviz.weights_digest import weights_digest

_MOST_NAMED = 3  # layers in a title


def edited(model: Model | nn.Module, edits: Mapping[Any, Any], *, exclude: Layers = ()) -> Model:
    """Return the model with layers edited in each of its passes; the original is unchanged.

    So all that takes a model takes edits: captures, lenses, `attention`, `extract_features`,
    `patch`, the explorer. The network is shared, and nobody else's passes over it are edited. A
    function has to return what has the output's shape.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        edits: as of `hookviz.edit`, from layers to a value of `hookviz.edits` or a function of a
            `Call`. They come after those that the model has already.
        exclude: as of `hookviz.edit`.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `edits` is no mapping, or has something else than edits.
        ModelError: the model's network is a TorchScript program.

    >>> model = hookviz.load_model("shapesnet")
    >>> edit = {"stage3.first.conv": hookviz.edits.zero(channels=[3, 7])}
    >>> without = hookviz.edited(model, edit)
    >>> cap = hookviz.capture(without, "assets/samples/star.jpg")
    >>> cap["stage3.first.conv"].values[[3, 7]].any()
    tensor(False)
    >>> hookviz.run_lens("grad-cam", without, "assets/samples/star.jpg").values["map"].shape
    (8, 8)
    """
    if not isinstance(edits, Mapping):
        raise SettingError(
            f"edits={shorten(repr(edits))} is no mapping from layers to edits. One is, for "
            'example, {"layer3": hookviz.edits.zero}.'
        )
    model = as_model(model)
    rows = tuple((select(model, layers, exclude), change) for layers, change in edits.items())
    for change in edits.values():
        as_edit(change)  # which refuses what is none
    listed = list(dict.fromkeys(name for names, _ in rows for name in names))
    more = say(", …") if len(listed) > _MOST_NAMED else ""
    title = say(
        "{model} with {layers} edited",
        model=model.title,
        layers=joined(listed[:_MOST_NAMED]) + more,
    )
    return replace(model, title=title, edits=(*model.edits, *rows))


def with_edits(model: Model | nn.Module, edits: Mapping[Any, Any] | None) -> Model:
    """Return the model `edited`, or the same without edits; a module as its model."""
    return as_model(model) if edits is None else edited(model, edits)


def copied(model: Model) -> Model:
    """Return the model around a deep copy of its network; a model of the catalog itself.

    The copy is that of `copy.deepcopy`, without corrections.

    Raises:
        ModelError: the network can't be copied.
    """
    if is_shared(model.network):
        return model
    with locked(model.network), torch.inference_mode(mode=False):
        return replace(model, network=_deep_copy(model, model.network))


def copied_network(model: Model) -> nn.Module:
    """Return a deep copy of the network, with the tensors and in the mode that it computes with.

    Raises:
        ModelError: the network can't be copied.
    """
    alone = replace(model, example=None)  # whose other arguments are for each pass, not in it
    with private_replica(alone) as network:
        return _deep_copy(model, network)


def _deep_copy(model: Model, network: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(network)
    except Exception as error:
        reason = shorten(str(error).partition("\n")[0].rstrip("."), 200) or type(error).__name__
        raise ModelError(
            say("{model} can't be copied: {reason}.", model=model.title, reason=reason)
        ) from error


@torch.inference_mode(mode=False)  # its tensors are ordinary ones wherever it is called
def with_tensors(model: Model, tensors: Mapping[str, Tensor]) -> Model:
    """Return the model with other parameters and buffers, by name; the original is unchanged.

    A network of the catalog gets modules of its own, which share the other tensors. In a person's
    own network the tensors are replaced during each pass, under its lock.
    """
    network = model.network
    named = dict((*nn.Module.named_parameters(network), *nn.Module.named_buffers(network)))
    changed = {name: _like(named[name], values) for name, values in tensors.items()}
    if not is_shared(network):
        return replace(model, replaced={**model.replaced, **changed})
    by_id = {id(named[name]): values for name, values in changed.items()}
    replica = share(network_state.replicate(network, lambda own: by_id.get(id(own), own)))
    return replace(model, network=replica, fixed_digest=weights_digest(replica))


def _like(own: Tensor, values: Tensor) -> Tensor:
    if isinstance(own, nn.Parameter):
        return nn.Parameter(values.detach(), requires_grad=own.requires_grad)
    return values.detach()


def tensors_of(model: Model) -> dict[str, Tensor]:
    """Return the parameters and buffers that the model computes with, by name."""
    network = model.network
    own = (*nn.Module.named_parameters(network), *nn.Module.named_buffers(network))
    return {name: model.replaced.get(name, tensor) for name, tensor in own}


@torch.inference_mode(mode=False)
def untrained(model: Model) -> Model:
    """Return the model with random weights, the same every time; `model` itself is not changed.

    A model of the catalog is built as ``load_model(name, "random")`` builds it. Of any other
    network every module draws its weights anew, as it did when it was made (`reset_parameters`,
    which torch's own layers have).

    Raises:
        ModelError: the weights are random already, or some of the network can't be drawn anew.
    """
    if model.weights == "random":
        raise ModelError(
            say(
                "The weights of {model} are random already, so there is nothing untrained to put "
                "beside them.",
                model=model.title,
            )
        )
    network = _of_catalog(model)
    if network is None:
        return replace(with_tensors(model, _redraw(model)), weights="random")
    example = next(iter(model.network.parameters()), None)
    if example is not None:
        network.to(example.device, example.dtype)
    share(network.eval().requires_grad_(requires_grad=False))
    return replace(model, network=network, weights="random", fixed_digest=weights_digest(network))


def _of_catalog(model: Model) -> nn.Module | None:
    """Build its architecture with random weights; None where the catalog has none."""
    try:
        spec = None if model.weights.partition(",")[0] == "own" else catalog.find_model(model.name)
    except UnknownModelError:
        return None
    if spec is None:
        return None
    return networks.with_random_weights(spec, architectures.classes_of(spec.name, model.network))


def _redraw(model: Model) -> dict[str, Tensor]:
    """Return a copy of each parameter and buffer by name, drawn by `reset_parameters`."""
    before = tensors_of(model)
    copies = {name: _like(tensor, tensor.clone()) for name, tensor in before.items()}
    with (
        private_replica(model) as network,
        replaced_tensors(network, copies),
        architectures.same_random_numbers(),
    ):
        for module in network.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
        own = (*nn.Module.named_parameters(network), *nn.Module.named_buffers(network))
        redrawn = {name: tensor for name, tensor in own if name in before}
    # Biases and scales start as constants, which may not change.
    unchanged = [
        name
        for name, value in redrawn.items()
        if isinstance(before[name], nn.Parameter)
        and sum(side > 1 for side in value.shape) > 1
        and torch.equal(value, before[name])
    ]
    if unchanged:
        owner = model.network.get_submodule(unchanged[0].rpartition(".")[0])
        raise ModelError(
            say(
                "{name!r} of {model} can't be drawn anew: {kind} has no reset_parameters, or it "
                "leaves that as it is. Give the class one, or compare with a copy of the network "
                "that you have made yourself and not trained.",
                name=shorten(unchanged[0]),
                model=model.title,
                kind=type(owner).__name__,
            )
        )
    return redrawn
