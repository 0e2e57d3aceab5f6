"""Find the first NaN or infinity in a training loop, and the layer that it came from."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from hookviz.errors import HookVizError
from hookviz.hooking import hooks
from hookviz.hooking.gradients import GraphHooks, at_end_of_backward
from hookviz.hooking.hooks import is_in_checkpoint
from hookviz.hooking.layer_warnings import LayerWarnings, numbers, unseen_layers
from hookviz.hooking.modules import compiled_parts, is_within, named_modules, network_of, plain_name
from hookviz.hooking.torch_functions import EveryFunction, read_together, version
from hookviz.types import ActivationKey, Model


@dataclass(frozen=True, slots=True)
class NonFiniteTensor:
    """Where a tensor with NaN or infinities was seen: layer, call, phase and tensor.

    Attributes:
        layer: the module's dotted path; empty for the model itself, and for the loss.
        call: which of the module's calls since the block began, from 0. For a parameter, which of
            its gradients; for the loss, which backward pass.
        phase: ``"forward"``, ``"loss"`` or ``"backward"``.
        kind: ``"nan"``, ``"inf"`` or ``"nan and inf"``.
        tensor: ``"output"``, ``"output[0]"`` for one of several, ``"loss"``, or a parameter's name
            in its module, for example ``"weight"``. In the backward phase it is the gradient of
            that.
        shape: of the tensor, batch included; of a nested tensor's numbers without padding.
    """

    layer: str
    call: int
    phase: str
    kind: str
    tensor: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """Return what is wrong, and where to look, as a sentence."""
        kinds = {"nan": "NaN", "inf": "Infinity", "nan and inf": "NaN and infinity"}
        kind, shape = kinds[self.kind], "×".join(map(str, self.shape)) or "of one number"
        if self.phase == "loss":
            return (
                f"{kind} in the loss, before backward pass {self.call}, shape {shape}. All layers "
                "put out finite numbers: look at what makes the loss of them, outside of the "
                "network, such as a logarithm or a division by 0, and at the targets."
            )
        what = self.tensor if self.phase == "forward" else f"gradient of the {self.tensor}"
        before = (
            "All layers that returned before it put out finite numbers"
            if self.phase == "forward"
            else "All gradients that were computed before it were finite"
        )
        look = "this layer computes, its weights and the learning rate"
        if self.phase == "backward" and self.tensor.startswith("output"):
            look = "is computed of that output, up to the loss"
        return (
            f"{kind} in the {what} of {self.layer or 'the model itself'}, {self.phase} pass, call "
            f"{self.call}, shape {shape}. {before}: look at what {look}."
        )


class NonFiniteTensorError(HookVizError):
    """Error for a NaN or an infinity in a watched model.

    Attributes:
        found: which tensor it is.
    """

    def __init__(self, found: NonFiniteTensor) -> None:
        self.found = found
        super().__init__(str(found))


IMMEDIATE = {"cpu"}
"""Types of devices on which a number is there as soon as it is computed."""


@contextmanager
def watch(
    model: nn.Module | Model, *, record: bool = False, scaler: GradScaler | None = None
) -> Iterator[list[NonFiniteTensor]]:
    """Check every tensor that the model computes while the block runs; stop at a bad one.

    Forward, at what each module puts out; at the loss, which is made outside of the model, as its
    ``backward`` is called; backward, at the gradients of the outputs and of the parameters. It
    changes nothing, keeps no tensor alive, takes in-place layers, modules that run several times
    and checkpoints, and its hooks, of which `observe` says more, are gone afterwards on every way
    out.

    Each tensor costs one reduction: 5 to 9 % of a training step of ConvNeXt-T and ResNet-18 on one
    CPU core (eight images of 64×64). On a card no step waits for it: results are read as a backward
    pass ends, as the next forward pass begins, or as the block ends, and the error is raised there;
    a tensor with both is told as NaN. A loss scaler for mixed precision lets gradients overflow on
    purpose: give it as `scaler`, and they are not looked at.

    Where the block begins with gradients off, no loss is looked at: where they are on, torch leaves
    its fast paths for inference, of attention, as it does for hooks.

    A TorchScript part is looked at as a whole, as torch runs what is inside without calling it. Of
    a compiled part only gradients of parameters are seen, and a `RuntimeWarning` says so. What
    can't be looked at, such as a tensor within `torch.vmap` or on the meta device, is left out
    with one `RuntimeWarning` a layer, and the pass goes on.

    Args:
        model: in training, or in use; as of `observe`.
        record: go on, and put what is bad into the list that the block gets: each module and
            parameter once per phase. Its first entry is where it began.
        scaler: finds its scale by gradients that overflow, and leaves such steps out: while it is
            enabled, no gradient is looked at, and no loss in float16.

    Raises:
        ModelError: `model` is neither a module nor a `Model`.
        NonFiniteTensorError: from within the forward or backward pass, at the first bad tensor, or
            as the backward pass of a bad loss is to begin; on a card as said above.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> with hookviz.watch(network, record=True) as bad:
    ...     _ = network(torch.full((1, 3, 8, 8), torch.nan))  # (N, C, H, W)
    >>> bad[0].layer, bad[0].kind, bad[0].shape
    ('0', 'nan', (1, 4, 6, 6))
    >>> with hookviz.watch(network, record=True) as bad:
    ...     (network(torch.ones(1, 3, 8, 8)).mean() + torch.nan).backward()
    >>> bad[0].phase, bad[0].kind
    ('loss', 'nan')
    """
    watcher, network = _Watcher(record=record, scaler=scaler), network_of(model)
    names = [name for name, _ in named_modules(network)]
    trained = [
        (plain_name(name), weight)
        for name, weight in network.named_parameters()
        if weight.requires_grad
    ]
    compiled = [name for name in names if is_within(name, compiled_parts(model))]
    with (
        unseen_layers("watch", model, compiled) as watcher.ran,
        hooks.on_gradients(watcher.see_parameter) as parameters,
        watcher.graphs,
        hooks.before(network, [""], watcher.begin),
        hooks.edit(network, names, watcher.see_output),
        _Losses(watcher.see_loss) if torch.is_grad_enabled() else nullcontext(),
    ):
        for name, parameter in trained:
            with watcher.warnings.kept_out(name.rpartition(".")[0]):
                parameters.add(name, parameter)
        yield watcher.found
        watcher.read()


class _Losses(EveryFunction):
    """Torch function mode that shows what backward passes begin with, where no hook is."""

    def __init__(self, see: Callable[[Any], None]) -> None:
        super().__init__()
        self._see = see

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if func in (Tensor.backward, torch.autograd.backward, torch.autograd.grad):
            self._see(args[0])  # by keyword too: torch puts them in their places
        return func(*args, **kwargs)


class _Watcher:
    """Hook callbacks that check outputs and gradients, and raise or record bad ones."""

    def __init__(self, *, record: bool, scaler: GradScaler | None) -> None:
        self._scaler = scaler
        self.found: list[NonFiniteTensor] = []
        self.ran: set[str] = set()
        self.graphs = GraphHooks(self._see_gradient)
        self._record = record
        self._known: set[tuple[str, str, str]] = set()
        self._gradients: dict[str, int] = {}
        self._backward_passes = 0
        self._last: tuple[ReferenceType[Tensor], int] | None = None
        self._waiting: list[
            tuple[NonFiniteTensor, Tensor]
        ] = []  # with max |x| of each, on its device
        self._reads_after_backward = False
        self.warnings = LayerWarnings("watch", NonFiniteTensorError)

    def begin(self, _call: hooks.Call) -> None:
        """Read what the passes before left, unless it is a forward pass within a backward one."""
        if not is_in_checkpoint()[0]:
            self.read()

    def read(self) -> None:
        """Raise or record what is bad of all that waits, in one wait for each device and type."""
        waiting, self._waiting = self._waiting, []
        self._reads_after_backward = False
        largest: dict[int, float] = {}
        with self.warnings.kept_out(""):
            largest = read_together(dict(enumerate(each for _, each in waiting)))
        for index, value in sorted(largest.items()):
            if not math.isfinite(value):
                kind = "nan" if math.isnan(value) else "inf"
                self._report(replace(waiting[index][0], kind=kind))

    def see_output(self, call: hooks.Call) -> None:
        self.ran.add(call.layer)
        is_recomputed, is_reentrant = is_in_checkpoint()
        if is_recomputed and not is_reentrant:
            return
        with self.warnings.kept_out(call.layer):
            for path, tensor in hooks.tensors_in(call.output):
                if not _can_be_bad(tensor) or self._was_last(tensor):
                    continue
                address = ActivationKey(call.layer, call.index, path)
                if not is_recomputed:
                    self._check(address, "forward", _part(path), tensor)
                if tensor.requires_grad and not (is_recomputed and tensor.is_leaf):
                    self.graphs.add(address, tensor)

    def see_loss(self, losses: Any) -> None:
        with self.warnings.kept_out(""):
            for _, loss in hooks.tensors_in(losses):
                if _can_be_bad(loss) and not (self._is_scaled() and loss.dtype == torch.float16):
                    self._check(ActivationKey("", self._backward_passes), "loss", "loss", loss)
        self._backward_passes += 1

    def see_parameter(self, name: str, gradient: Tensor) -> None:
        layer, _, parameter = name.rpartition(".")
        count = self._gradients.get(name, 0)
        self._gradients[name] = count + 1
        self._see_gradient(ActivationKey(layer, count), gradient, parameter)

    def _see_gradient(self, address: ActivationKey, gradient: Tensor, name: str = "") -> None:
        with self.warnings.kept_out(address.layer):
            if _can_be_bad(gradient) and not self._is_scaled():
                self._check(address, "backward", name or _part(address.path), gradient)

    def _is_scaled(self) -> bool:
        return self._scaler is not None and self._scaler.is_enabled()

    def _was_last(self, tensor: Tensor) -> bool:
        """Return whether this tensor was the last one seen: a parent returns its part's output."""
        if tensor.is_inference():  # without a version counter: it may have been written to since
            return False
        last = self._last
        same = last is not None and last[0]() is tensor and last[1] == version(tensor)
        self._last = ref(tensor), version(tensor)
        return same

    def _check(self, address: ActivationKey, phase: str, name: str, tensor: Tensor) -> None:
        # Of the gradient of an embedding, most is zeros that are not stored.
        values = tensor.detach()._values() if tensor.is_sparse else numbers(tensor)
        is_immediate = values.device.type in IMMEDIATE
        kind = _kind(values) if is_immediate else ""
        if kind is None or not values.numel():
            return
        shape = tuple(values.shape if tensor.is_nested else tensor.shape)
        bad_tensor = NonFiniteTensor(address.layer, address.call, phase, kind, name, shape)
        if is_immediate:
            self._report(bad_tensor)
            return
        self._waiting.append((bad_tensor, torch.linalg.vector_norm(values, math.inf)))
        if phase == "backward" and not self._reads_after_backward:
            self._reads_after_backward = True
            at_end_of_backward(self.read)

    def _report(self, bad_tensor: NonFiniteTensor) -> None:
        if not self._record:
            raise NonFiniteTensorError(bad_tensor)
        key = bad_tensor.phase, bad_tensor.layer, bad_tensor.tensor
        if key not in self._known:
            self._known.add(key)
            self.found.append(bad_tensor)


def _can_be_bad(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _kind(tensor: Tensor) -> str | None:
    # A sum is one pass over memory, where isfinite takes several. It can't be finite with NaN or
    # infinity in it; that large numbers can overflow in it is what the second look is for.
    wide = torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else None
    if bool(torch.isfinite(tensor.sum(dtype=wide))) or bool(torch.isfinite(tensor).all()):
        return None
    kinds = {"nan": torch.isnan(tensor), "inf": torch.isinf(tensor)}
    return " and ".join(kind for kind, where in kinds.items() if bool(where.any()))


def _part(path: tuple[str, ...]) -> str:
    return "output" + "".join(f"[{key}]" for key in path)
