"""Observe, record or change the gradients at the layers of a person's own network.

`GraphHooks` puts hooks on the tensors of many graphs, as a training loop makes them without end.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from torch import Tensor, nn
from torch.autograd.variable import Variable

from hookviz.hooking import hooks
from hookviz.hooking.hooks import is_in_checkpoint
from hookviz.hooking.layer_warnings import LayerWarnings, shortened, unwrapped, warn
from hookviz.hooking.selection import Layers, chosen_layers
from hookviz.types import ActivationKey, Model

Key = TypeVar("Key")

_TENSORS_PER_BLOCK = 256


class GraphHooks(Generic[Key]):
    """Tensor hooks while it is entered, which are forgotten as their graphs are freed.

    Each tensor goes by a key of the caller's; what `see` returns takes the gradient's place.

    A training loop makes graphs without end, so the handles of their hooks can't all be kept until
    it ends. They are kept in blocks. Each hook refers to its block's `GradientHooks`, and nothing
    else does once the block is full: when that object is gone, so are the block's hooks.
    """

    def __init__(self, see: Callable[[Key, Tensor], Tensor | None]) -> None:
        self._see = see
        self._blocks: list[tuple[ExitStack, ReferenceType[hooks.GradientHooks]]] = []
        self._open: hooks.GradientHooks | None = None
        self._keys: dict[str, Key] = {}
        self._lock = threading.Lock()

    def add(self, key: Key, tensor: Tensor) -> None:
        """Call the hook with this tensor's gradient when that is computed."""
        with self._lock:
            if self._open is None or len(self._keys) == _TENSORS_PER_BLOCK:
                self._open = self._new_block()
            number = str(len(self._keys))
            self._keys[number] = key
            self._open.add(number, tensor)

    def __enter__(self) -> "GraphHooks[Key]":
        return self

    def __exit__(self, *_error: object) -> None:
        with ExitStack() as every:
            for block, _ in self._blocks:
                every.callback(block.close)

    def _new_block(self) -> hooks.GradientHooks:
        self._open = None
        freed = [block for block, gradients in self._blocks if gradients() is None]
        for block in freed:
            block.close()
        keys: dict[str, Key] = {}

        def see(number: str, gradient: Tensor) -> Tensor | None:
            return self._see(keys[number], gradient)

        block = ExitStack()
        gradient_hooks = block.enter_context(hooks.on_gradients(see))
        self._keys = keys
        self._blocks = [each for each in self._blocks if each[0] not in freed]
        self._blocks.append((block, ref(gradient_hooks)))
        return gradient_hooks


@dataclass(frozen=True, eq=False, slots=True)
class Gradient:
    """Gradient of one tensor that a layer was given or put out, as a backward pass has it.

    Attributes:
        layer: the module's dotted path.
        index: how many calls of the layer came before that one, since the block began.
        side: ``"input"`` or ``"output"``.
        place: which tensor of that side, counted from 0 also through nested ones.
        value: ∂loss/∂tensor, of the tensor's shape.
    """

    layer: str
    index: int
    side: str
    place: int
    value: Tensor


@dataclass(frozen=True, eq=False, slots=True)
class LayerGradients:
    """Gradients at one call of a layer; None for a tensor that no gradient came to.

    Attributes:
        inputs: one for each tensor that the layer was given, nested ones and keywords included.
        outputs: one for each tensor that it put out.
    """

    inputs: list[Tensor | None] = field(default_factory=list)
    outputs: list[Tensor | None] = field(default_factory=list)


@contextmanager
def on_gradients(
    network: nn.Module | Model,
    layers: Layers = None,
    change: Callable[[Gradient], Tensor | None] | None = None,
    *,
    exclude: Layers = (),
) -> Iterator[dict[str, LayerGradients]]:
    """Call `change` for the gradients at the inputs and outputs of the chosen layers.

    Both passes, forward and backward, have to run in the block or in the decorated function. The
    hooks sit on the tensors, set as the layer gets and returns them, so layers that work in place,
    put out tuples or run several times are right. They are gone on every way out, and other
    people's stay; with threads, nested blocks, wrappers, compiled networks and layers that did not
    run it is as with `observe`.

    A gradient is that of the whole loss by that tensor, as `torch.autograd.grad` gives it. Where
    other layers take the same tensor, as a shortcut does, it is the sum over them; PyTorch's
    ``register_full_backward_hook`` gives the share of the one layer. A tensor that needs no
    gradient, such as an image, has none, and neither has a view that is written into later. What
    can't be looked at has none either, with one `RuntimeWarning` a layer, and the pass goes on; so
    it is within `torch.vmap`, where `change` gets gradients that stand for many. A layer in a
    checkpoint of `torch.utils.checkpoint` has them too; where no backward pass goes through a
    reentrant one, a `RuntimeWarning` names its layers.

    Args:
        network: as of `observe`.
        layers: by name, pattern, type, module, predicate, several of those, or None for every
            one; as of `observe`.
        change: gets each `Gradient` as it is computed, last layer first; what it returns takes the
            gradient's place, for everything that lies before the tensor. None keeps it.
        exclude: not these; chosen in the same ways.

    Returns:
        What the block gets: without `change`, each call's `LayerGradients` by its written address
        (``"relu"``, ``"relu#1"`` for the second call), filled in by the backward pass with
        copies. With `change` it stays empty, so that a training loop doesn't fill memory.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `layers` or `exclude` can't choose, or nothing is left.
        ModelError: `network` is no module, or a TorchScript program.

    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> with hookviz.on_gradients(network) as gradients:
    ...     network(torch.ones(1, 2)).sum().backward()  # (N, C)
    >>> gradients["1"].outputs[0].tolist(), gradients["0"].inputs
    ([[1.0, 1.0, 1.0]], [None])
    """
    with (
        chosen_layers("on_gradients", network, layers, exclude) as (module, names),
        _Watcher(change) as watcher,
        hooks.before(module, names, watcher.see_inputs, recomputed=True),
        hooks.edit(module, names, watcher.see_outputs),
    ):
        yield watcher.recorded
    watcher.warn_of_checkpoints()


@dataclass(eq=False, slots=True)
class _TensorSite:
    """One tensor at one call of one layer, and whether its gradient was seen already."""

    layer: str
    index: int
    side: str
    gradients: list[Tensor | None]
    place: int = 0
    is_done: bool = False


class _Watcher:
    """Hooks on the tensors that layers get and return.

    A reentrant checkpoint makes no graph in the forward pass: hooks on the tensors within it are
    set as they are recomputed. What any other checkpoint recomputes is in no graph.
    """

    def __init__(self, change: Callable[[Gradient], Tensor | None] | None) -> None:
        self.recorded: dict[str, LayerGradients] = {}
        self._change = change
        self._graphs = GraphHooks(self._see)
        self._leaves: dict[tuple[int, str, str, int], list[tuple[_TensorSite, ExitStack]]] = {}
        self._open = threading.local()
        self._trouble = LayerWarnings("on_gradients")
        self._some_seen = False
        self._reentrant: dict[str, bool] = {}  # layers in such checkpoints; if they were recomputed

    def __enter__(self) -> "_Watcher":
        self._graphs.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        with ExitStack() as every:
            every.push(self._graphs.__exit__)
            for hooked in self._leaves.values():
                for _, stack in hooked:
                    every.callback(stack.close)

    def see_inputs(self, call: hooks.Call) -> None:
        """Put hooks on the inputs, before the layer can write into them."""
        is_recomputed, is_reentrant = is_in_checkpoint()
        if is_recomputed and not is_reentrant:
            return
        if is_reentrant:
            self._reentrant[call.layer] = is_recomputed or self._reentrant.get(call.layer, False)
        gradients, address = LayerGradients(), str(ActivationKey(call.layer, call.index))
        if is_recomputed:
            gradients = self.recorded.get(address, gradients)
        # A call that fails returns nowhere, so its own output is what the last one that began has.
        self._calls(call.layer).append((call.index, gradients))
        if self._change is None:
            self.recorded[address] = gradients
        with self._trouble.kept_out(call.layer):
            site = _TensorSite(call.layer, call.index, "input", gradients.inputs)
            self._watch(site, call.inputs, is_recomputed=is_recomputed)

    def see_outputs(self, call: hooks.Call) -> None:
        is_recomputed, is_reentrant = is_in_checkpoint()
        if is_recomputed and not is_reentrant:
            return
        calls = self._calls(call.layer)
        if calls:  # else it began before the block did
            index, gradients = calls.pop()
            with self._trouble.kept_out(call.layer):
                site = _TensorSite(call.layer, index, "output", gradients.outputs)
                self._watch(site, call.output, is_recomputed=is_recomputed)

    def warn_of_checkpoints(self) -> None:
        """Warn of layers in reentrant checkpoints whose part of the graph was never made."""
        missing = [layer for layer, is_made in self._reentrant.items() if not is_made]
        if missing and self._some_seen:
            warn(
                f"on_gradients saw no gradient of {shortened(missing)}: no backward pass went "
                "through their checkpoint. With use_reentrant=True it needs an input that requires "
                "a gradient; use_reentrant=False does not."
            )

    def _calls(self, layer: str) -> list[tuple[int, LayerGradients]]:
        calls: list[tuple[int, LayerGradients]] = vars(self._open).setdefault(layer, [])
        return calls

    def _watch(self, side: _TensorSite, value: Any, *, is_recomputed: bool) -> None:
        for place, (_, tensor) in enumerate(hooks.tensors_in(value)):
            if place == len(side.gradients):
                side.gradients.append(None)
            # The inputs of a checkpoint are leaves as it is recomputed, and were hooked before.
            if not tensor.requires_grad or (is_recomputed and tensor.is_leaf):
                continue
            site = replace(side, place=place)
            if tensor.is_leaf:
                self._watch_leaf(site, tensor)
            else:
                self._graphs.add(site, tensor)

    def _watch_leaf(self, site: _TensorSite, tensor: Tensor) -> None:
        """Put a hook on a leaf; it outlives its graph, so that of an earlier pass is taken off."""
        key = id(tensor), site.layer, site.side, site.place
        waiting = []
        for earlier, stack in self._leaves.get(key, []):
            if earlier.is_done:
                stack.close()
            else:
                waiting.append((earlier, stack))
        stack = ExitStack()
        stack.enter_context(
            hooks.on_gradients(lambda _name, gradient: self._see(site, gradient))
        ).add("", tensor)
        self._leaves[key] = [*waiting, (site, stack)]

    def _see(self, site: _TensorSite, gradient: Tensor) -> Tensor | None:
        site.is_done = self._some_seen = True
        if self._change is None:
            self._keep(site, gradient)
            return None
        return self._change(Gradient(site.layer, site.index, site.side, site.place, gradient))

    def _keep(self, site: _TensorSite, gradient: Tensor) -> None:
        with self._trouble.kept_out(site.layer):
            site.gradients[site.place] = unwrapped(gradient.detach().clone())


def at_end_of_backward(call: Callable[[], None]) -> None:
    """Have a function called as the running backward pass ends, after those put before it."""
    engine: Any = Variable._execution_engine
    engine.queue_callback(call)
