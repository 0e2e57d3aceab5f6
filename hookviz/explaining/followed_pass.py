"""Follow a pass: where each layer call's input came from, and in which blocks it ran."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.errors import HookVizError
from hookviz.explaining.provenance import IMAGE, BlockCall, LayerStep, ProvenanceTracer
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.language.saying import say
from hookviz.types import Model, ModelInput


@dataclass(frozen=True, slots=True)
class ExecutionTrace:
    """Layer and block calls of one pass.

    Attributes:
        steps: every call of a layer without parts, in order.
        blocks: every call of a module with layers inside but the network itself, in the order in
            which they begin.
        output: the numbers of the calls that the network's output came from.
    """

    steps: tuple[LayerStep, ...]
    blocks: tuple[BlockCall, ...]
    output: frozenset[int] = frozenset()


def follow_pass(
    model: Model,
    model_input: ModelInput,
    reporter: ProgressReporter | None = None,
    *,
    joins: bool = False,
) -> ExecutionTrace:
    """Follow every call of a layer without parts, and of a block, in one pass.

    Args:
        model: the model.
        model_input: what the network is given.
        reporter: gets a step after every call; what it raises ends the pass.
        joins: also make a step of each function outside of layers that brings branches together,
            such as ``add``, and of a block that computes without calling a layer, such as
            `torch.nn.MultiheadAttention`.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.
    """
    reporter = ProgressReporter(None) if reporter is None else reporter
    with private_replica(model) as replica:
        tracer = ProvenanceTracer(replica, reporter, joins=joins)
        return run_followed(tracer, model, replica, model_input.tensor, reporter)[0]


def run_followed(
    tracer: ProvenanceTracer,
    model: Model,
    replica: nn.Module,
    images: Tensor,
    reporter: ProgressReporter,
) -> tuple[ExecutionTrace, Any]:
    """Run a pass over `images`, and return its trace and what the network put out.

    Raises:
        HookVizError: the network runs no layer.
        ModelError: the network can't take this input.
    """
    names, blocks = layers_and_blocks(replica)
    tracer.set_sources(images, frozenset((IMAGE,)))  # and so any copy of it
    with (
        hooks.before(replica, names, tracer.before),
        hooks.edit(replica, names, tracer.after),
        hooks.before(replica, blocks, tracer.enter),
        hooks.observe(replica, blocks, tracer.leave),
        tracer,
    ):
        output = forward_pass(model, replica, images, reporter)
    if not tracer.steps:
        raise HookVizError(
            say(
                "{model} runs no layer. Every model of the catalog does, for example shapesnet.",
                model=model.title,
            )
        )
    returned = tracer.sources_of([tensor for _, tensor in hooks.tensors_in(output)])
    return ExecutionTrace(tuple(tracer.steps), tuple(tracer.blocks), returned), output


def layers_and_blocks(network: nn.Module) -> tuple[list[str], list[str]]:
    """Split module names into layers that have no layers inside, and modules that have.

    A block with weights of its own is traced by its parts; a convolution with parts, such as a
    weight norm, as the convolution.
    """
    names = layers.leaf_names(network)
    blocks = {name[:end] for name in names for end, sign in enumerate(name) if sign == "."}
    return [name for name in names if name not in blocks], sorted(blocks)
