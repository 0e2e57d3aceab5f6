"""Build the same network untrained, with random weights in place of its own."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, UnknownModelError, shorten
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.network_state import share
from hookviz.hooking.own_network import replaced_tensors
from hookviz.language.saying import say
from hookviz.models import architectures, catalog, networks
from hookviz.models.derived_models import tensors_of, with_tensors
from hookviz.types import Model
from hookviz.weights_digest import weights_digest


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
        return replace(with_tensors(model, _drawn_again(model)), weights="random")
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


def _drawn_again(model: Model) -> dict[str, Tensor]:
    """Return each parameter and buffer by name as `reset_parameters` draws it, in copies."""
    before = tensors_of(model)
    copies = {name: _copy(tensor) for name, tensor in before.items()}
    with (
        private_replica(model) as network,
        replaced_tensors(network, copies),
        networks.same_random_numbers(),
    ):
        for module in network.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
        own = (*nn.Module.named_parameters(network), *nn.Module.named_buffers(network))
        drawn = {name: tensor for name, tensor in own if name in before}
    # Biases and scales begin as constants, and may well be what they were.
    kept = [
        name
        for name, value in drawn.items()
        if isinstance(before[name], nn.Parameter)
        and sum(side > 1 for side in value.shape) > 1
        and torch.equal(value, before[name])
    ]
    if kept:
        owner = model.network.get_submodule(kept[0].rpartition(".")[0])
        raise ModelError(
            say(
                "{name!r} of {model} can't be drawn anew: {kind} has no reset_parameters, or it "
                "leaves that as it is. Give the class one, or compare with a copy of the network "
                "that you have made yourself and not trained.",
                name=shorten(kept[0]),
                model=model.title,
                kind=type(owner).__name__,
            )
        )
    return drawn


def _copy(tensor: Tensor) -> Tensor:
    values = tensor.detach().clone()
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(values, requires_grad=tensor.requires_grad)
    return values
