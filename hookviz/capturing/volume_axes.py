"""Find out how layers of a network for video or volumes put out what they do, by other sizes.

Those of convolutions have their channels first, ``(C, T, H, W)``. What a transformer's blocks put
out may have them last, ``(T, H, W, C)``, and has as many axes: frames would be taken for channels.
"""

from collections.abc import Sequence
from dataclasses import replace

from hookviz.capturing.other_sizes import Role, Sizes, at_other_sizes, roles_of
from hookviz.capturing.returned_call import Path, ReturnedCall, Shape
from hookviz.types import FIRST, LAST, UNKNOWN, VECTORS, Layout, Model

_FIRST = (Role.SAME, Role.SAME, Role.SAME, Role.ROWS, Role.COLUMNS)
_LAST = (Role.SAME, Role.SAME, Role.ROWS, Role.COLUMNS, Role.SAME)


def volumes_arranged(
    model: Model, shape: Shape, calls: Sequence[ReturnedCall]
) -> Sequence[ReturnedCall]:
    """Return the calls with the layouts of those outputs that layers leave open.

    Where the passes at other sizes don't go, what has as many axes as the input is taken to lie as
    that does.

    Args:
        model: whose pass it was.
        shape: of the input, ``(C, L)``, ``(C, D, H, W)`` or ``(C, T, H, W)``.
        calls: in order of return, with what the layers themselves tell.
    """
    axes = len(shape) + 1
    wanted = [number for number, call in enumerate(calls) if _open_paths(call, axes)]
    others: Sequence[tuple[Sizes, Sizes]] = ()
    if wanted and len(shape) == 4:
        others = at_other_sizes(model, shape, calls, wanted[-1] + 1)
    arranged = list(calls)
    for number in wanted:
        call = calls[number]
        beside = others[number] if number < len(others) else ()
        found = {path: _layout(call, path, beside) for path in _open_paths(call, axes)}
        arranged[number] = replace(call, layouts={**call.layouts, **found})
    return arranged


def _open_paths(call: ReturnedCall, axes: int) -> tuple[Path, ...]:
    """Return which outputs have as many axes as the input, and may have them in another order."""
    return tuple(
        path
        for path, shape in call.shapes.items()
        if len(shape) == axes
        and shape[0] == 1
        and not call.by_definition
        and call.layouts[path].order in {UNKNOWN.order, LAST, VECTORS}
    )


def _layout(call: ReturnedCall, path: Path, beside: Sequence[Sizes]) -> Layout:
    shape, followed = call.shapes[path], call.layouts[path]
    roles = tuple(roles_of([shape, *(each.shapes[path] for each in beside)]))
    if roles == _LAST:
        return Layout(LAST, frames=shape[1])
    if roles == _FIRST:
        return Layout(FIRST)
    return followed if followed.last else Layout(FIRST)
