"""Run pictures through a network up to one layer, each as if it were alone in its batch."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.explaining.batch_independence import (
    agree_within,
    batch_tolerance,
    half_and_whole,
    run_alone_and_batched,
)
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass
from hookviz.hooking.plain_tensors import plain
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.purity import is_pure
from hookviz.language.saying import say
from hookviz.synthesis.goals import by_picture
from hookviz.types import Model

Outputs = Callable[[Tensor], Tensor]
"""From inputs, ``(N, C, H, W)``, to the layer's output, ``(N, C, rows, columns)``."""


class LayerPasses:
    """Forward passes of a model that end at a layer, or at the class scores without one.

    Attributes:
        channels_last: whether inputs go through with their channels last in memory, which is faster
            on CPUs; until a network turns out that can't take that.
    """

    def __init__(self, model: Model, layer: str | None) -> None:
        self._model, self._layer = model, layer
        self.channels_last = True
        self._keeps_apart: bool | None = None  # whether it keeps images of a batch apart, if tried

    def start(self) -> Outputs:
        """Copy the network for some passes, and return the function that runs them.

        They share one replica where the network only computes; else each has one of its own.
        """
        network = self._model.network
        shared = replicas.for_gradients(network) if is_pure(network) else None
        return partial(self._outputs, shared)

    def _outputs(self, shared: nn.Module | None, inputs: Tensor) -> Tensor:
        """Run a batch at once where the network keeps its images apart, else one by one."""
        run = partial(self._run_batch, shared)
        if len(inputs) > 1 and self._keeps_apart is None:
            self._keeps_apart = self._try_apart(run, inputs)
        if len(inputs) > 1 and not self._keeps_apart:
            return torch.cat([run(image[None]) for image in inputs])
        return run(inputs)

    @torch.no_grad()
    def _try_apart(self, run: Outputs, inputs: Tensor) -> bool:
        tried = torch.cat([half_and_whole(inputs[:1]), inputs[1:2]])
        alone, together = run_alone_and_batched(tried, run)
        return agree_within(alone, together, batch_tolerance(self._model.network, alone))

    def _run_batch(self, shared: nn.Module | None, inputs: Tensor) -> Tensor:
        if self.channels_last:
            try:
                return self._run(shared, inputs.contiguous(memory_format=torch.channels_last))
            except ModelError as error:
                if ".reshape(" not in str(error.__cause__):  # as torch advises where `view` fails
                    raise
                self.channels_last = False
        return self._run(shared, inputs)

    def _run(self, shared: nn.Module | None, inputs: Tensor) -> Tensor:
        model, layer = self._model, self._layer
        replica = replicas.for_gradients(model.network) if shared is None else shared
        outputs: list[object] = []

        def see(call: hooks.Call) -> None:
            output = call.output
            outputs.append(plain(output) if isinstance(output, Tensor) else output)
            raise hooks.StopForward  # the rest of the network adds nothing

        with hooks.observe(replica, () if layer is None else (layer,), see):
            inputs = inputs.to(device_and_dtype(model.network)[0])
            output = forward_pass(model, replica, inputs, ProgressReporter(None))
        if layer is not None:
            if not outputs:
                raise ModelError(
                    say("Layer {layer!r} of {model} did not run.", layer=layer, model=model.title)
                )
            output = outputs[-1]
        return by_picture(model, layer, output, len(inputs), tuple(inputs.shape[1:]))
