"""A twin that is called as often as a network is, on the same inputs: what calls of it would do."""

from contextlib import suppress

from torch import Tensor, nn

from tests import random_outside
from tests.plain_hooks import Truth, plain_hooks
from tests.unharmed import one_call


class Mirror:
    """Notes what a network is called with, by a hook of a person's own, which any call fires."""

    def __init__(self, network: nn.Module, twin: nn.Module) -> None:
        self._twin = twin
        self._given: list[Tensor] = []
        self._hook = network.register_forward_pre_hook(
            lambda _module, args: self._given.append(args[0].clone())
        )

    def close(self) -> None:
        """Note no more."""
        self._hook.remove()

    def truth(self) -> Truth:
        """What plain hooks see in the last of as many calls of the twin as there were since.

        Buffers and generators are put back after each; all else moves as calls move it.
        """
        assert self._given
        with random_outside.apart():
            for each in self._given[:-1]:
                with suppress(Exception), one_call(self._twin):  # as zeros may fail
                    plain_hooks(self._twin, each, each.dtype)
            with one_call(self._twin):
                truth = plain_hooks(self._twin, self._given[-1], self._given[-1].dtype)
        self._given.clear()
        return truth
