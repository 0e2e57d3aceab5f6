"""Pause a pass at layers of a person's own network, in a debugger where it stands still."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from hookviz.hooking import hooks
from hookviz.hooking.hooks import Call
from hookviz.hooking.selection import Layers, chosen_layers
from hookviz.types import Model


@contextmanager
def pause_at(
    network: nn.Module | Model,
    layers: Layers,
    look: Callable[[Call], object] | None = None,
    *,
    exclude: Layers = (),
) -> Iterator[None]:
    """Pause each pass where a chosen layer returns, in a block or a decorated function.

    The debugger opens there, in a shell and in a notebook, with ``call`` at hand: ``p
    call.output.shape`` prints, ``up``, some times, leads out of the hook into the code of the
    network, whose names are as they stand, ``c`` goes on to the next pause, and ``q`` ends the
    pass. It is the one that `breakpoint` opens, so ``PYTHONBREAKPOINT`` chooses another, and with
    ``PYTHONBREAKPOINT=0`` no pass is paused. Hooks are gone on every way out, also by ``q``.

    Args:
        network: as of `observe`.
        layers: as of `observe`.
        look: called with the `Call` in place of the debugger; the pass waits until it returns.
        exclude: as of `observe`.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `layers` or `exclude` can't choose, or nothing is left.
        ModelError: `network` is no module, or a TorchScript program.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> with hookviz.pause_at(network, "0", look=lambda call: print(call.output.shape)):
    ...     _ = network(torch.ones(1, 3, 8, 8))  # (N, C, H, W)
    torch.Size([1, 4, 6, 6])
    """
    with (
        chosen_layers("pause_at", network, layers, exclude) as (module, chosen),
        hooks.observe(module, chosen, look or _open_debugger),
    ):
        yield


def _open_debugger(call: Call) -> None:  # noqa: ARG001 - for who looks
    """Open the debugger in this frame, which has `call`."""
    sys.breakpointhook()  # as `breakpoint()` does, which is meant to stay in no code
