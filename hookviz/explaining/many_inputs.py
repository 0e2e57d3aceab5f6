"""A quantity of many inputs of one size, as many in a pass as time, memory and network allow."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hookviz.capturing.survey import survey_input
from hookviz.errors import ModelError
from hookviz.explaining.attribution import unreached
from hookviz.explaining.backward import INPUT, Pass, Quantity
from hookviz.explaining.scoring import MOST_AT_ONCE, WORK
from hookviz.hooking.forward_pass import Telling, device_and_dtype, private_replica
from hookviz.types import Model, ModelInput, Progress

_ROOM = 256 << 20  # bytes of activations that a pass may take
_THERE_AND_BACK = 2  # the way back to the input alone takes about as long as the way there

Inputs = Callable[[int, int], Tensor]
"""Makes the inputs from one number up to another, ``(n, C, H, W)``, when their turn has come."""


@dataclass(frozen=True, eq=False, slots=True)
class Some:
    """What is known of some of the inputs, in order.

    Attributes:
        start: the number of the first.
        values: the quantity of each, float64 ``(n,)``.
        gradients: ∂quantity/∂input of each, ``(n, C, H, W)`` on the CPU; none unless asked for.
    """

    start: int
    values: Tensor
    gradients: Tensor = field(default_factory=lambda: torch.empty(0), repr=False)


def each_value(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    inputs: Inputs,
    *,
    count: int,
    progress: Progress,
) -> Iterator[Some]:
    """The quantity of every one of `count` inputs, some in each pass.

    Args:
        model: the model.
        model_input: an input of the size that is meant.
        quantity: what is asked about.
        inputs: makes them.
        count: how many there are.
        progress: told the share done after every conv layer; what it raises ends the run.

    Raises:
        SettingError: the quantity's layer has no such channel or cell.
        ModelError: the network can't take one of the inputs, or has no class scores.
    """
    telling = Telling(progress)
    rows = _at_once(model, model_input, quantity, gradients=False)
    for start in range(0, count, rows):
        some = inputs(start, min(count, start + rows))
        within = _share_of(telling, start, len(some), count)
        yield Some(start, _values(model, model_input, quantity, some, Telling(within)))


def each_gradient(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    inputs: Inputs,
    *,
    count: int,
    progress: Progress,
) -> Iterator[Some]:
    """As `each_value`, with the gradients of the quantity at the inputs.

    Raises:
        HookVizError: as `each_value` does; or no gradient gets from the quantity to the input.
    """
    telling = Telling(progress)
    rows = _at_once(model, model_input, quantity, gradients=True)
    for start in range(0, count, rows):
        some = inputs(start, min(count, start + rows))
        within = _share_of(telling, start, len(some), count)
        run = Pass(model, model_input, quantity, (INPUT,), within)
        gradients = run.run(some)[INPUT]
        if gradients is None:
            raise unreached(model, model_input, INPUT, quantity)
        yield Some(start, run.values.double(), gradients.detach().cpu())


def _share_of(telling: Telling, start: int, some: int, count: int) -> Progress:
    """Tells how far all inputs are, by how far some of them are."""
    return lambda share: telling.share((start + some * share) / count)


def _values(
    model: Model, model_input: ModelInput, quantity: Quantity, images: Tensor, telling: Telling
) -> Tensor:
    run = Pass(model, model_input, quantity, (), telling.share)
    with private_replica(model) as replica:
        return run.values_of(replica, images).detach().cpu().double()


def _at_once(model: Model, model_input: ModelInput, quantity: Quantity, *, gradients: bool) -> int:
    """How many inputs go into one pass: 1 where those of a batch are not apart."""
    surveyed = survey_input(model, model_input)
    work = sum(layer.multiply_adds * layer.calls for layer in surveyed.layers)
    sizes = [surveyed.nbytes[layer.name] for layer in surveyed.layers]
    held = 2 * sum(sizes) if gradients else 4 * max(sizes, default=0)
    on_gpu = device_and_dtype(model.network)[0].type != "cpu"
    passes = _THERE_AND_BACK if gradients else 1
    by_time = MOST_AT_ONCE if on_gpu else WORK // max(1, passes * work)
    many = int(min(MOST_AT_ONCE, by_time, _ROOM // max(1, held)))
    if many <= 1:
        return 1
    image = model_input.tensor
    pair = torch.cat([image, torch.zeros_like(image)])
    alone = _values(model, model_input, quantity, image, Telling(None))
    try:
        first = _values(model, model_input, quantity, pair, Telling(None))[:1]
    except ModelError:
        return 1  # made for one image; what else is wrong shows with one, too
    # A batch norm without averages of its own, for example, mixes the images of a batch.
    apart = torch.allclose(first, alone, rtol=5e-3, atol=1e-6, equal_nan=True)
    return many if apart else 1
