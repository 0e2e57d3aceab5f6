"""Run a network at a taller and at a wider input, and tell what makes each axis longer."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from torch import Tensor, nn

from hookviz.capturing.returned_call import Path, ReturnedCall, Shape
from hookviz.hooking import hooks
from hookviz.hooking.shape_pass import pass_at_another_size
from hookviz.types import Model

_MORE = 64  # pixels: what most networks' strides divide


class Role(Enum):
    """What makes an axis longer: nothing, a taller input, a wider one, or either."""

    SAME = (False, False)
    ROWS = (True, False)
    COLUMNS = (False, True)
    BOTH = (True, True)


class Sizes(NamedTuple):
    """Shapes of one call, the batch included: what it was given, and its outputs by their path."""

    layer: str
    taken: Shape | None
    shapes: Mapping[Path, Shape]


def at_other_sizes(
    model: Model, shape: Shape, calls: Sequence[ReturnedCall], wanted: int
) -> Sequence[tuple[Sizes, Sizes]]:
    """Return the shapes of each call for a taller and a wider input, as far as those passes go.

    A network of one size alone may refuse them at once, or at its first linear layer.

    Args:
        model: whose passes they are.
        shape: ``(C, H, W)`` of the pass that is there; of video ``(C, T, H, W)``.
        calls: of that one.
        wanted: how many of them to come to; where the passes do not, others of twice the size may.
    """
    *front, rows, columns = shape
    best: list[tuple[Sizes, Sizes]] = []
    for taller, wider in ((_MORE, _MORE), (rows, columns)):
        both = (
            _shapes_at(model, (*front, rows + taller, columns)),
            _shapes_at(model, (*front, rows, columns + wider)),
        )
        alike = list(_alike(calls, *both))
        best = max(best, alike, key=len)
        if len(best) >= wanted:
            break
    return best


def _shapes_at(model: Model, shape: Shape) -> list[Sizes]:
    seen: list[Sizes] = []

    def see(call: hooks.Call) -> None:
        taken = next((tensor for _, tensor in hooks.plain_tensors_in(call.inputs)), None)
        outputs = hooks.plain_tensors_in(call.output)
        shapes = {path: tuple(tensor.shape) for path, tensor in outputs}
        seen.append(Sizes(call.layer, None if taken is None else tuple(taken.shape), shapes))

    def follow(network: nn.Module, images: Tensor) -> Any:
        names = [name for name, _ in network.named_modules() if name]
        with hooks.observe(network, names, see):
            return network(images)

    pass_at_another_size(model, shape, follow)
    return seen


def _alike(
    calls: Sequence[ReturnedCall], taller: Sequence[Sizes], wider: Sequence[Sizes]
) -> Iterator[tuple[Sizes, Sizes]]:
    """Yield the pairs of calls up to where the passes take different ways."""
    for call, *pair in zip(calls, taller, wider, strict=False):
        for other in pair:
            if other.layer != call.layer or other.shapes.keys() != call.shapes.keys():
                return
            if (other.taken is None) != (call.taken is None):
                return
        yield pair[0], pair[1]


def roles_of(sizes: Sequence[Shape]) -> list[Role | None]:
    """Return what makes each axis longer; None of one that gets shorter. Empty where axes go."""
    if len({len(shape) for shape in sizes}) != 1:
        return [None]
    roles = []
    for size, taller, wider in zip(*sizes, strict=True):
        shrinks = min(taller, wider) < size
        roles.append(None if shrinks else Role((taller > size, wider > size)))
    return roles
