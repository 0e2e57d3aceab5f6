"""Run pictures through a network up to some layers, each as if it were alone in its batch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.explaining.attribution.batched_passes import (
    agree_within,
    batch_tolerance,
    half_and_whole,
    run_alone_and_batched,
)
from hookviz.hooking import hooks
from hookviz.hooking.channels_last import lay_out, with_channels_last
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter, differentiable, forward_pass
from hookviz.hooking.torch_functions import plain
from hookviz.language.saying import mark, say
from hookviz.synthesis.goals import by_picture
from hookviz.types import Model

Outputs = Callable[[Tensor], tuple[Tensor, ...]]
"""From inputs, ``(N, C, H, W)``, to each layer's output, ``(N, C, rows, columns)``."""

ROUNDED = mark(
    "Each pass had its channels last in memory, which is faster and rounds otherwise than a plain "
    "one: by less than 2 in 100,000, which adds up over many steps."
)
"""How passes are rounded that have their inputs so."""


class LayerPasses:
    """Forward passes of a model that end where all layers that are asked for have run.

    They go on to the class scores where None is among the layers.

    Attributes:
        channels_last: whether inputs go through with their channels last in memory, which is faster
            on CPUs; until a network turns out that can't take that. A convolutional network's
            weights lie so too.
    """

    def __init__(self, model: Model, layers: Sequence[str | None]) -> None:
        self._model, self._layers = model, tuple(layers)
        self.channels_last = True
        self._fast = model  # or around weights with their channels last, once passes begin
        self._keeps_apart: bool | None = None  # whether it keeps images of a batch apart, if tried

    @property
    def how(self) -> str:
        """How the passes are rounded, in words; empty of plain ones."""
        return say(ROUNDED) if self.channels_last else ""

    @contextmanager
    def on_network(self) -> Iterator[Outputs]:
        """Hold the network for passes there and back, and yield the function that runs forward."""
        self._fast = with_channels_last(self._model) if self.channels_last else self._model
        with ExitStack() as held:
            network = held.enter_context(differentiable(self._fast))
            yield partial(self._outputs, held, network)

    def _outputs(self, held: ExitStack, network: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
        """Run a batch at once where the network keeps its images apart, else one by one."""
        run = partial(self._run_batch, held, network)
        if len(inputs) > 1 and self._keeps_apart is None:
            self._keeps_apart = all(
                self._try_apart(partial(_output_of, run, at), inputs)
                for at in range(len(self._layers))
            )
        if len(inputs) > 1 and not self._keeps_apart:
            alone = [run(image[None]) for image in inputs]
            return tuple(torch.cat(outputs) for outputs in zip(*alone, strict=True))
        return run(inputs)

    @torch.no_grad()
    def _try_apart(self, run: Callable[[Tensor], Tensor], inputs: Tensor) -> bool:
        tried = torch.cat([half_and_whole(inputs[:1]), inputs[1:2]])
        alone, together = run_alone_and_batched(tried, run)
        return agree_within(alone, together, batch_tolerance(self._model.network, alone))

    def _run_batch(self, held: ExitStack, network: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
        if self.channels_last:
            try:
                return self._run(network, lay_out(inputs))
            except ModelError as error:
                if ".reshape(" not in str(error.__cause__):  # as torch advises where `view` fails
                    raise
                self.channels_last = False
        if not self.channels_last and self._fast is not self._model:  # whose weights lie so
            network = held.enter_context(differentiable(self._model))
        return self._run(network, inputs)

    def _run(self, network: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
        model, layers = self._model, self._layers
        outputs: dict[str | None, object] = {}

        def see(call: hooks.Call) -> None:
            if call.layer in outputs:
                return
            output = call.output
            if isinstance(output, Tensor):
                output = plain(output)
            if isinstance(output, Tensor) and len(layers) > 1:
                output = output.clone()  # the pass goes on, and an in-place ReLU may follow
            outputs[call.layer] = output
            if len(outputs) == len(layers):
                raise hooks.StopForward  # the rest of the network adds nothing

        with hooks.observe(network, [layer for layer in layers if layer is not None], see):
            inputs = inputs.to(device_and_dtype(model.network)[0])
            scores = forward_pass(model, network, inputs, ProgressReporter(None))
        if None in layers:
            outputs[None] = scores
        for layer in layers:
            if layer not in outputs:
                raise ModelError(
                    say("Layer {layer!r} of {model} did not run.", layer=layer, model=model.title)
                )
        count, shape = len(inputs), tuple(inputs.shape[1:])
        return tuple(by_picture(model, layer, outputs[layer], count, shape) for layer in layers)


def _output_of(run: Outputs, at: int, images: Tensor) -> Tensor:
    return run(images)[at]
