"""Make models from a model: with layers edited, with other weights, or around a copied network.

The model itself is not changed.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, SettingError, shorten
from hookviz.hooking import replicas
from hookviz.hooking.edits import as_edit
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.network_state import is_shared, share
from hookviz.hooking.own_network import locked
from hookviz.hooking.selection import Layers, select
from hookviz.language.saying import joined, say
from hookviz.models.wrapping import as_model
from hookviz.types import Model
from hookviz.weights_digest import weights_digest

_MOST_NAMED = 3  # layers in a title


def edited(model: Model | nn.Module, edits: Mapping[Any, Any], *, exclude: Layers = ()) -> Model:
    """Return the model with layers edited in each of its passes; the given one stays as it is.

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


def copied(model: Model) -> Model:
    """Return the model around a deep copy of its network; a model of the catalog as it is.

    The copy is what `copy.deepcopy` makes, and nothing in it is put right.

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
    """Return the model with other parameters and buffers, by name; the given one stays as it is.

    A network of the catalog gets modules of its own, which share what is not replaced. Of a network
    of one's own the tensors are put in for the length of each pass, under its lock.
    """
    network = model.network
    named = dict((*nn.Module.named_parameters(network), *nn.Module.named_buffers(network)))
    changed = {name: _like(named[name], values) for name, values in tensors.items()}
    if not is_shared(network):
        return replace(model, replaced={**model.replaced, **changed})
    by_id = {id(named[name]): values for name, values in changed.items()}
    replica = share(replicas.replicate(network, lambda own: by_id.get(id(own), own)))
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
