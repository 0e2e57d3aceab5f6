"""Record gradients, updates and activations of each layer while a training loop runs.

1. As a step begins, the weights are copied, and their norms computed.
2. Each output leaves its mean, its variance and which of its units are alive.
3. As a backward pass ends, the norms of `parameter.grad` are computed: behind what
   `DistributedDataParallel` does to it, and again before the optimiser's step where that is known.
4. All these numbers stay on their devices, and nothing waits for them until the step has ended.
   Then those of one device and type are read together.

A tracker, TensorBoard or Weights & Biases, is known by what its client has: neither is imported,
and neither is Lightning, whose trainer `lightning_callback` records.
"""

import io
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, distributed, nn
from torch.optim import Optimizer

from hookviz.drawing.grid import make_grid
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.gradients import GraphHooks, at_end_of_backward
from hookviz.hooking.layer_warnings import LayerWarnings, numbers, unseen_layers
from hookviz.hooking.modules import module_named, named_modules, network_of
from hookviz.hooking.observe_and_edit import edit
from hookviz.hooking.selection import Layers, asked_by_name, select, several
from hookviz.hooking.torch_functions import read_together
from hookviz.training.training_log import TrainingLog, TrainingRow, scalars
from hookviz.types import Model

Histograms = Mapping[str, Tensor]
"""Numbers by name, such as ``conv1/gradient``, of any shape."""

Maps = Mapping[str, Tensor]
"""What layers put out for the first input of a step, ``(C, H, W)``, by the layer's name."""

Tracker = Callable[[int, Sequence[TrainingRow], Histograms, Maps], None]
"""Takes a step's number, its rows, and what is drawn of it as histograms and grids."""


def tracker_of(client: Any) -> Tracker:
    """Return what writes a step's numbers to a client of a tracker.

    Args:
        client: a ``torch.utils.tensorboard.SummaryWriter`` or a run of Weights & Biases, what
            ``wandb.init`` gives.

    Raises:
        SettingError: it is neither.
    """
    if all(hasattr(client, name) for name in ("add_scalar", "add_histogram", "add_image")):
        return _tensorboard(client)
    if type(client).__module__.partition(".")[0] == "wandb" and hasattr(client, "log"):
        return _wandb(client)
    raise SettingError(
        f"to={shorten(repr(client))} is neither a SummaryWriter of TensorBoard nor a run of "
        "Weights & Biases, such as wandb.init() gives."
    )


def _tensorboard(writer: Any) -> Tracker:
    def write(step: int, rows: Sequence[TrainingRow], histograms: Histograms, maps: Maps) -> None:
        for name, value in scalars(rows).items():
            writer.add_scalar(name, value, step)
        for name, values in histograms.items():
            writer.add_histogram(name, values, step)
        for layer, shown in maps.items():
            writer.add_image(f"{layer}/maps", _picture(shown), step, dataformats="HWC")

    return write


def _wandb(run: Any) -> Tracker:
    def write(step: int, rows: Sequence[TrainingRow], histograms: Histograms, maps: Maps) -> None:
        import wandb  # noqa: PLC0415 - it is there, since the run is

        drawn = {name: wandb.Histogram(values.numpy()) for name, values in histograms.items()}
        grids = {f"{layer}/maps": wandb.Image(_picture(shown)) for layer, shown in maps.items()}
        # The step is a number beside the others: the run's own counts every call of its `log`.
        run.log({**scalars(rows), **drawn, **grids, "hookviz/step": step})

    return write


def _picture(maps: Tensor) -> Any:
    """Return the grid of a layer's channels as RGB, uint8 ``(H, W, 3)``."""
    png = make_grid(maps, scale="layer", width=800).png()
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


class StepPictures:
    """Numbers and maps of one step that are drawn, kept until it ends."""

    def __init__(self, pictures: Collection[str]) -> None:
        """Keep maps of the layers named in `pictures`."""
        self._pictures = pictures
        self.histograms: dict[str, Tensor] = {}
        self.maps: dict[str, Tensor] = {}

    def see_numbers(self, name: str, values: Tensor) -> None:
        """Keep a copy of some numbers for a histogram."""
        self.histograms[name] = numbers(values).detach().float().cpu().flatten().clone()

    def see_output(self, layer: str, output: Tensor) -> None:
        """Keep what a layer of `pictures` put out for the first input, where that is maps."""
        if layer in self._pictures and layer not in self.maps and output.ndim == 4:
            self.maps[layer] = output[0].detach().float().cpu().clone()


@dataclass(eq=False, slots=True)
class _Outputs:
    """Numbers of one layer's outputs: their count, mean and variance, by call."""

    counts: list[int] = field(default_factory=list)
    means: list[Tensor] = field(default_factory=list)
    variances: list[Tensor] = field(default_factory=list)
    alive: Tensor | None = None


class _RecordedStep:
    """Numbers of one training step, kept on the device that computes them until it ends."""

    def __init__(
        self,
        chosen: dict[str, nn.Module],
        seen: dict[str, nn.Module],
        warnings: LayerWarnings,
        pictures: StepPictures | None,
    ) -> None:
        self.pictures = pictures
        self._chosen = chosen
        self._seen = seen
        self._warnings = warnings
        self._axes = ChannelAxes()
        self.trained: dict[str, nn.Parameter] = {}
        self.layers: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._weights: dict[str, Tensor] = {}
        for name, module in chosen.items():
            with warnings.kept_out(name):
                self._take_weights(name, module)
        self._sizes: dict[str, Tensor] = {}
        with warnings.kept_out(""):
            self._sizes = _norms(self._weights)
        self._gradients: dict[str, Tensor] = {}
        self._awaits_backward = False
        self._outputs: dict[str, _Outputs] = {}

    def _take_weights(self, name: str, module: nn.Module) -> None:
        own = {}
        for key, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                own[str(id(parameter))] = parameter
                self._paths[str(id(parameter))] = f"{name}/{key}"
                if self.pictures:
                    self.pictures.see_numbers(f"{name}/{key}", parameter)
        self._weights |= {key: numbers(parameter).clone() for key, parameter in own.items()}
        self.trained |= own
        self.layers |= dict.fromkeys(own, name)

    def see_output(self, call: hooks.Call) -> None:
        """Take the numbers of what a layer put out."""
        chosen = call.layer in self._chosen
        with self._warnings.kept_out(call.layer if chosen else None):
            for path, tensor in hooks.tensors_in(call.output):
                if not tensor.is_floating_point():
                    continue
                values = numbers(tensor)
                if not values.nelement():
                    continue
                if self.pictures and not path:
                    self.pictures.see_output(call.layer, values)
                axis = None
                if not tensor.is_nested:
                    axis = self._axes.axis(self._seen[call.layer], call, path, tensor)
                if chosen:
                    self._take_output(call.layer, values, axis)

    def _take_output(self, layer: str, values: Tensor, axis: int | None) -> None:
        wide = values if values.dtype == torch.float64 else values.float()
        mean = wide.mean()
        # Two passes over memory: torch.var is one, and takes thirty times as long on a CPU.
        variance = torch.linalg.vector_norm(wide - mean) ** 2 / wide.nelement()
        outputs = self._outputs.setdefault(layer, _Outputs())
        outputs.counts.append(values.nelement())
        outputs.means.append(mean)
        outputs.variances.append(variance)
        if axis is not None and values.ndim > 1:
            units, before = _largest_per_unit(values, axis) != 0, outputs.alive
            fits = before is not None and before.shape == units.shape
            outputs.alive = before | units if fits else units  # type: ignore[operator]

    def see_gradient(self, _key: str, _gradient: Tensor) -> None:
        """Take the gradients once the backward pass that this one is of has ended."""
        if not self._awaits_backward:
            self._awaits_backward = True
            at_end_of_backward(self._after_backward)

    def _after_backward(self) -> None:
        self._awaits_backward = False
        at_end_of_backward(self.take_gradients)  # what was put there before this is done by then

    def take_gradients(self) -> None:
        """Take the norms of all gradients, as ``parameter.grad`` has them now."""
        gradients = {}
        for key, parameter in self.trained.items():
            with self._warnings.kept_out(self.layers[key]):
                if parameter.grad is not None:
                    gradients[key] = numbers(parameter.grad)
                    if self.pictures:
                        self.pictures.see_numbers(f"{self._paths[key]}/gradient", gradients[key])
        with self._warnings.kept_out(""):
            self._gradients |= _norms(gradients)

    def rows(self, number: int) -> list[TrainingRow]:
        """Return the row of each layer that ran or learns, as step `number`."""
        read: dict[tuple[Any, ...], float] = {}
        with self._warnings.kept_out(""):
            read = read_together(self._tensors())
        return [
            TrainingRow(
                number, name, *self._weight_numbers(module, read), *self._output_numbers(name, read)
            )
            for name, module in self._chosen.items()
            if name in self._outputs or any(self._own(module))
        ]

    def _tensors(self) -> dict[tuple[Any, ...], Tensor]:
        tensors: dict[tuple[Any, ...], Tensor] = {}
        for measure, norms in (
            ("size", self._sizes),
            ("gradient", self._gradients),
            ("change", self._changes()),
        ):
            tensors |= {(measure, key): each for key, each in norms.items()}
        for name, outputs in self._outputs.items():
            for measure, each in (("mean", outputs.means), ("variance", outputs.variances)):
                tensors |= {(measure, name, call): value for call, value in enumerate(each)}
            if outputs.alive is not None:
                tensors["alive", name] = outputs.alive.float().mean()
        return tensors

    def _own(self, module: nn.Module) -> list[str]:
        own = (str(id(parameter)) for parameter in module.parameters(recurse=False))
        return [key for key in own if key in self.trained]

    def _changes(self) -> dict[str, Tensor]:
        """Return the norms of what the step changed; the copies of the weights are used up."""
        changes = {}
        while self._weights:
            key, before = self._weights.popitem()
            with self._warnings.kept_out(self.layers[key]):
                changes[key] = before - numbers(self.trained[key])
        return _norms(changes)

    def _weight_numbers(
        self, module: nn.Module, read: dict[tuple[Any, ...], float]
    ) -> tuple[float | None, ...]:
        own = self._own(module)
        gradient, size, change = (
            _norm(read.get((measure, key)) for key in own)
            for measure in ("gradient", "size", "change")
        )
        return gradient, size, None if change is None or not size else change / size

    def _output_numbers(
        self, name: str, read: dict[tuple[Any, ...], float]
    ) -> tuple[float | None, ...]:
        if ("mean", name, 0) not in read:
            return None, None, None
        counts = self._outputs[name].counts
        means = [read["mean", name, call] for call in range(len(counts))]
        inside = [read["variance", name, call] for call in range(len(counts))]
        total = sum(counts)
        mean = sum(count * each for count, each in zip(counts, means, strict=True)) / total
        # The variance of all is that within the calls and that of their means.
        calls = zip(counts, means, inside, strict=True)
        variance = sum(count * (within + (each - mean) ** 2) for count, each, within in calls)
        alive = read.get(("alive", name))
        return mean, (variance / total) ** 0.5, None if alive is None else 1 - alive


def _largest_per_unit(values: Tensor, axis: int) -> Tensor:
    # Of |x|, without making it: twice over memory is less than writing it.
    dims = tuple(dim for dim in range(values.ndim) if dim != axis)
    return torch.maximum(values.amax(dims), -values.amin(dims))


def _norms(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the Euclidean norm of each tensor, in one call for all on a card."""
    wide = [each.float() if each.dtype.itemsize == 2 else each for each in tensors.values()]
    return dict(zip(tensors, torch._foreach_norm(wide), strict=True)) if wide else {}


def _norm(parts: Iterable[float | None]) -> float | None:
    """Return the norm of parts by their norms; None of none."""
    known = [part for part in parts if part is not None]
    return math.hypot(*known) if known else None


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
    """Hooks that tell a loop's steps apart and open a `_RecordedStep` for each that is recorded."""

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
        self._step: _RecordedStep | None = None
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

    def _open_step(self) -> _RecordedStep:
        pictures = StepPictures(self._pictures) if self._tracker else None
        step = _RecordedStep(self._modules, self._seen, self._warnings, pictures)

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
            if self._tracker and step.pictures:
                self._tracker(self._number, rows, step.pictures.histograms, step.pictures.maps)


def lightning_callback(network: str = "", **options: Any) -> Any:
    """Return a ``lightning.Callback`` that records while the trainer fits; see `record`.

    Its ``log`` is the `TrainingLog`. Without ``to=`` each step is written to the trainer's own
    logger, where that is TensorBoard's or Weights & Biases'.

    Args:
        network: the dotted path of what is called in each step, such as ``"model"`` where
            ``training_step`` calls ``self.model(images)``; the module itself without it.
        options: as of `record`.

    Raises:
        HookVizError: Lightning is not installed.

    >>> callback = hookviz.lightning_callback(every=10)
    >>> callback.log.rows  # filled by Trainer(callbacks=[callback]).fit(module, loader)
    []
    """
    try:
        lightning = import_module("lightning.pytorch")
    except ImportError:
        try:
            lightning = import_module("pytorch_lightning")
        except ImportError as error:
            raise HookVizError(
                "PyTorch Lightning is not installed: pip install lightning. Without it, "
                "hookviz.record(network) goes around any loop."
            ) from error

    class Recording(lightning.Callback):  # type: ignore[name-defined,misc]
        """Records between the beginning and the end of a training."""

        def __init__(self) -> None:
            super().__init__()
            self.log = TrainingLog()
            self._open = ExitStack()

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            """Begin to record."""
            chosen = {"to": _client(trainer)} | options
            recording = record(module_named(network_of(pl_module), network), **chosen)
            self.log = self._open.enter_context(recording)

        def on_train_end(self, *_: Any) -> None:
            """End, and remove every hook."""
            self._open.close()

        def on_exception(self, *_: Any) -> None:
            """End, and remove every hook."""
            self._open.close()

    return Recording()


def _client(trainer: Any) -> Any:
    """Return what the trainer's logger writes with; None where that is another tracker's."""
    client = getattr(trainer.logger, "experiment", None)
    is_board = hasattr(client, "add_histogram") and hasattr(client, "add_image")
    is_run = type(client).__module__.partition(".")[0] == "wandb"
    return client if is_board or is_run else None
