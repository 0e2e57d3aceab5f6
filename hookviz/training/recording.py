"""Record gradients, updates and activations of each layer while a training loop runs."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.optim import Optimizer

from hookviz.errors import SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.gradients import GraphHooks
from hookviz.hooking.layer_warnings import LayerWarnings, unseen_layers
from hookviz.hooking.modules import module_named, named_modules, network_of
from hookviz.hooking.observe_and_edit import edit
from hookviz.hooking.selection import Layers, asked_by_name, select, several
from hookviz.training.recorded_step import RecordedStep
from hookviz.training.trackers import Drawn, Tracker, tracker_of
from hookviz.training.training_log import TrainingLog
from hookviz.types import Model


@contextmanager
def record(
    network: nn.Module | Model,
    *,
    every: int = 1,
    layers: Layers = None,
    exclude: Layers = (),
    to: Any = None,
    pictures: Layers = (),
    edits: Mapping[Any, Any] | None = None,
    step: Optimizer | None = None,
) -> Iterator[TrainingLog]:
    """Record gradients, updates and activations per layer and step while training runs.

    It changes nothing: the training is the same to the last bit with and without it. Its hooks are
    gone afterwards on every way out. A step begins with a forward pass that gradients are recorded
    in, the first one after a backward pass; passes within `torch.no_grad`, such as a validation,
    are none, and not looked at. With accumulated gradients each backward pass ends a step, and the
    update is that of the last; give the optimiser as `step` to count its steps instead. What can't
    be looked at, such as a tensor within `torch.vmap` or on the meta device, is left out with one
    `RuntimeWarning` a layer, and the pass goes on. Another one at the end names the chosen layers
    that ran in no step, as in a compiled network; see `observe`.

    A recorded step costs a few looks at each output and gradient and a copy of the weights, the
    others next to nothing: with ``every=10`` 9 % of the training of ResNet-18 on one busy CPU core
    (eight images of 64×64, where the weights weigh most). On a card nothing waits for the numbers
    before the step has ended. Gradients are those that all processes of a
    `torch.nn.parallel.DistributedDataParallel` have put together, and the first process writes to
    a tracker. A `torch.amp.GradScaler` scales the gradient norms too, unless `step` is given.

    Args:
        network: in training; as of `observe`.
        every: record each n-th step, the first one included.
        layers: which layers, as of `observe`; by default each without parts.
        exclude: not these; chosen in the same ways.
        to: a ``SummaryWriter`` of TensorBoard or a run of Weights & Biases, to which each step is
            written as it ends: every number as ``layer/column``, weights and gradients as
            histograms.
        pictures: layers whose maps of the step's first input are written as grids, too.
        edits: made in all passes of the block, as of `hookviz.edit`; outputs are logged edited.
        step: the optimiser, where a step shall be one of its own, however many backward passes it
            takes. Gradients are then those that it gets: accumulated, and without a loss scaler's
            factor; a step that the scaler leaves out is none.

    Returns:
        What the block gets: a `TrainingLog`, to which a step is added when the next one begins, or
        the block ends. `TrainingLog.chart` draws each layer's gradient over the steps, and a
        notebook shows that.

    Raises:
        SettingError: `every` is no whole number from 1 on; no layer is left; `to` is neither of
            the two, or `pictures` are asked for without it; or as of `edit`.
        UnknownLayerError: no layer has such a name, or is of such a type.
        ModelError: `network` is no module, or a TorchScript program.

    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    >>> with hookviz.record(network) as log:
    ...     network(torch.ones(4, 2)).sum().backward()  # (N, C)
    ...     optimiser.step()
    >>> [(row.step, row.layer) for row in log.rows], log.rows[1].dead <= 1
    ([(0, '0'), (0, '1')], True)
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise SettingError(f"every={shorten(repr(every))} is not a whole number from 1 on.")
    if to is None and pictures != ():
        raise SettingError("pictures= are written to a tracker: give one, such as to=writer.")
    layers = _is_leaf if layers is None else several(layers)
    chosen = select(network, layers, exclude)
    module = network_of(network)
    recording = _Recording(module, chosen, every, counts_passes=step is None)
    if to is not None:
        shown = () if pictures == () else select(network, pictures, ())
        recording.track(tracker_of(to), shown)
    with (
        edit(network, edits or {}),
        unseen_layers(
            "record", network, chosen, asked_by_name(network, layers), passes="training passes"
        ) as recording.ran,
        recording,
        nullcontext() if step is None else recording.steps_of(step),
        hooks.before(module, [""], recording.begin),
        hooks.observe(module, [""], recording.end_pass, always_call=True),
        hooks.observe(module, [""], recording.see_scores),
    ):
        yield recording.log


def _is_leaf(_name: str, module: nn.Module) -> bool:
    return not any(module.children())


def _is_first_process() -> bool:
    known = distributed.is_available() and distributed.is_initialized()
    return not known or distributed.get_rank() == 0


class _Recording:
    """Hooks that tell a loop's steps apart and open a `RecordedStep` for each that is recorded."""

    def __init__(
        self, network: nn.Module, layers: tuple[str, ...], every: int, *, counts_passes: bool
    ) -> None:
        self.log = TrainingLog()
        self.ran: set[str] = set()
        self._network = network
        self._every = every
        self._counts_passes = counts_passes
        self._modules = {name: module_named(network, name) for name in layers}
        # The layers before, chosen or not, tell which axis the channels are.
        leaves = {name: module for name, module in named_modules(network) if _is_leaf("", module)}
        self._seen = leaves | self._modules
        self._number = -1
        self._between_steps = True  # so that the next pass begins one
        self._step: RecordedStep | None = None
        self._hooks = ExitStack()
        self._scores = GraphHooks(self._see_backward)
        self._passes = threading.local()
        self._warnings = LayerWarnings("record")
        self._tracker: Tracker | None = None
        self._pictures: tuple[str, ...] = ()

    def __enter__(self) -> None:
        self._scores.__enter__()

    def __exit__(self, *error: object) -> None:
        try:
            self._end()
        finally:
            self._scores.__exit__(*error)

    def track(self, tracker: Tracker, pictures: tuple[str, ...]) -> None:
        """Have each step written to a tracker as it ends, with maps of these layers."""
        if not _is_first_process():
            return
        self._tracker, self._pictures = tracker, pictures
        self._seen |= {name: module_named(self._network, name) for name in pictures}

    def begin(self, _call: hooks.Call) -> None:
        self._running_passes().append(torch.is_grad_enabled())
        if not (torch.is_grad_enabled() and self._between_steps):
            return
        self._end()
        self._between_steps = False
        self.ran.add("")
        self._number += 1
        if self._number % self._every == 0:
            self._step = self._open_step()

    def end_pass(self, _call: hooks.Call) -> None:
        if self._running_passes():  # else it began before the block did
            self._running_passes().pop()

    def see_scores(self, call: hooks.Call) -> None:
        with self._warnings.kept_out(""):
            for _, tensor in hooks.tensors_in(call.output):
                if tensor.requires_grad:
                    self._scores.add(None, tensor)

    def _open_step(self) -> RecordedStep:
        drawn = Drawn(self._pictures) if self._tracker else None
        step = RecordedStep(self._modules, self._seen, self._warnings, drawn)

        def see(call: hooks.Call) -> None:
            if self._is_counted():
                self.ran.add(call.layer)
                step.see_output(call)

        with self._warnings.kept_out(""):  # a layer may have been taken out meanwhile
            self._hooks.enter_context(hooks.observe(self._network, self._seen, see))
        gradients = self._hooks.enter_context(hooks.on_gradients(step.see_gradient))
        for key, parameter in step.trained.items():
            with self._warnings.kept_out(step.layers[key]):
                gradients.add(key, parameter)
        return step

    def _running_passes(self) -> list[bool]:
        """Return for each running pass of this thread, outermost first, if it records gradients."""
        passes: list[bool] = vars(self._passes).setdefault("passes", [])
        return passes

    def _is_counted(self) -> bool:
        """Return whether a call belongs to the step: a part of its pass may be under `no_grad`."""
        passes = self._running_passes()
        return passes[-1] if passes else torch.is_grad_enabled()

    def steps_of(self, optimizer: Optimizer) -> AbstractContextManager[None]:
        """Take an optimiser's steps for steps in the block."""
        return hooks.on_steps(optimizer, self._take_gradients, self._end_step)

    def _take_gradients(self) -> None:
        if self._step is not None:
            self._step.take_gradients()

    def _end_step(self) -> None:
        self._end()
        self._between_steps = True

    def _see_backward(self, _key: None, _gradient: Tensor) -> None:
        self._between_steps |= self._counts_passes

    def _end(self) -> None:
        self._hooks.close()
        if self._step is not None:
            step, self._step = self._step, None
            rows = step.rows(self._number)
            self.log.rows.extend(rows)
            if self._tracker and step.drawn:
                self._tracker(self._number, rows, step.drawn.histograms, step.drawn.maps)
