"""Build the same network untrained, with random weights in place of its own."""

from dataclasses import replace

import torch
from torch import nn

from hookviz.errors import ModelError, UnknownModelError, shorten
from hookviz.hooking import replicas
from hookviz.language.saying import say
from hookviz.models import architectures, catalog, networks
from hookviz.types import Model


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
    network = _of_catalog(model) or _drawn_anew(model)
    example = next(iter(model.network.parameters()), None)
    if example is not None:
        network.to(example.device, example.dtype)
    network.eval().requires_grad_(requires_grad=False)
    digest = f"untrained {model.digest}"
    return replace(model, network=network, weights="random", digest=digest)


def _of_catalog(model: Model) -> nn.Module | None:
    """Build its architecture with random weights; None where the catalog has none."""
    try:
        spec = None if model.weights.partition(",")[0] == "own" else catalog.find_model(model.name)
    except UnknownModelError:
        return None
    if spec is None:
        return None
    return networks.with_random_weights(spec, architectures.classes_of(spec.name, model.network))


def _drawn_anew(model: Model) -> nn.Module:
    network = replicas.full_copy(model.network)
    before = {name: value.clone() for name, value in network.named_parameters()}
    with networks.same_random_numbers(), torch.no_grad():
        for module in network.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
    # Biases and scales begin as constants, and may well be what they were.
    kept = [
        name
        for name, value in network.named_parameters()
        if sum(side > 1 for side in value.shape) > 1 and torch.equal(value, before[name])
    ]
    if kept:
        owner = network.get_submodule(kept[0].rpartition(".")[0])
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
    return network
