"""Run one pass of a network, or one for shapes alone: the only place where networks are run.

>>> with private_replica(model) as replica:  # doctest: +SKIP
...     with hooks.observe(replica, ["conv1"], see):
...         output = forward_pass(model, replica, image)

A `ModelError` names the input that a network can't take, the layer that failed, and an input that
works.
"""

import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import current_thread, main_thread
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from hookviz.errors import HookVizError, ModelError, shorten
from hookviz.hooking import hooks, network_state
from hookviz.hooking.device import (
    device_and_dtype,
    dtypes,
    is_dtype_known,
    take_down_dtype,
)
from hookviz.hooking.edits import edited_layers
from hookviz.hooking.failing_call import FailingCall, failing_call, first_line
from hookviz.hooking.network_state import ByNetwork, is_shared
from hookviz.hooking.own_network import own_network, replaced_tensors
from hookviz.language.saying import say
from hookviz.machine.memory import is_short_of_memory
from hookviz.types import Model, Preprocess, Progress
from hookviz.wording import times

_TOO_FEW = "Expected more than 1 "  # as torch's norms begin that have one value per channel


class ProgressReporter:
    """Progress of a run for its caller, who may end the run from there by raising.

    An exception of the progress callback ends the run and reaches the caller unchanged. Any other
    exception of a pass is the network's failure.
    """

    def __init__(self, progress: Progress | None, steps: int = 1) -> None:
        """Tell `progress`, if there is one; `steps` is how many calls of `step` make the whole."""
        self._progress = progress
        self._steps = max(1, steps)
        self._done = 0
        self._ended_by: BaseException | None = None

    def step(self) -> None:
        """Report that one more step is done."""
        self._done += 1
        self.share(self._done / self._steps)

    def within(self, share: float) -> None:
        """Report which share of the present step is done, 0…1."""
        self.share((self._done + min(1.0, share)) / self._steps)

    def share(self, share: float) -> None:
        """Report which share of the run is done, 0…1."""
        if self._progress is None:
            return
        try:
            self._progress(min(1.0, share))
        except BaseException as error:
            self._ended_by = error
            raise

    def was_ended_by(self, error: BaseException) -> bool:
        """Return whether `error` is the caller's way of ending the run."""
        return error is self._ended_by


@contextmanager
def private_replica(model: Model) -> Iterator[nn.Module]:
    """Lend the model's network for the block, without recording gradients.

    A replica of a network of the catalog; a network of one's own itself, under its lock. The
    caller's own `torch.inference_mode` is switched off for the block, as its tensors are of no use
    to autograd later.
    """
    with torch.inference_mode(mode=False), torch.no_grad(), _lent(model) as network:
        yield network


@contextmanager
def _lent(model: Model) -> Iterator[nn.Module]:
    if not is_shared(model.network):
        with own_network(model) as network:
            yield network
        return
    with network_state.borrow(model.network) as replica, edited_layers(replica, model.edits):
        yield replica


@contextmanager
def differentiable(model: Model, *, trainable: bool = False) -> Iterator[nn.Module]:
    """Lend the network for a forward and a backward pass, in which no module works in place.

    Both passes have to run in the block, which switches gradients on.

    Args:
        model: whose network.
        trainable: gradients flow to the parameters too, which are new leaves around the same
            memory for the block; they must not be written to. Else they need none in the block.
    """
    with torch.inference_mode(mode=False), _lent(model) as network, ExitStack() as stack:
        stack.enter_context(replaced_tensors(network, _ordinary_tensors(network)))
        if trainable:
            leaves = {name: _leaf(each) for name, each in nn.Module.named_parameters(network)}
            stack.enter_context(replaced_tensors(network, leaves))
        else:
            for parameter in list(nn.Module.parameters(network)):
                if parameter.requires_grad and parameter.is_leaf:
                    stack.callback(setattr, parameter, "requires_grad", True)
                    parameter.requires_grad = False
        for module in network.modules():
            if getattr(module, "inplace", False) is True:
                stack.callback(setattr, module, "inplace", True)
                module.inplace = False  # type: ignore[assignment]
        yield network


def _ordinary_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return copies of the tensors that were made in inference mode, which no graph can have."""
    named = (*nn.Module.named_parameters(network), *nn.Module.named_buffers(network))
    ordinary: dict[str, Tensor] = {}
    for name, tensor in named:
        if tensor.is_inference():
            values = tensor.detach().clone()
            is_parameter = isinstance(tensor, nn.Parameter)
            ordinary[name] = nn.Parameter(values, requires_grad=False) if is_parameter else values
    return ordinary


def _leaf(parameter: Tensor) -> Tensor:
    can_learn = parameter.is_floating_point() or parameter.is_complex()
    return nn.Parameter(parameter.detach(), requires_grad=can_learn)


def forward_pass(
    model: Model, replica: nn.Module, images: Tensor, reporter: ProgressReporter | None = None
) -> Any:
    """Return the network's output; None where a hook ended the pass by `hooks.StopForward`.

    Args:
        model: whose network `replica` is a replica of.
        replica: with the hooks that are wanted on it.
        images: ``(N, C, H, W)``; the network gets a copy, since it may write into its input.
        reporter: through which hooks tell how far the pass is.

    Raises:
        ModelError: the network can't take these images, or there is not enough memory.
    """
    try:
        with hooks.within_a_pass():
            return replica(images.to(*device_and_dtype(replica), copy=True))
    except hooks.StopForward:
        return None
    except (KeyboardInterrupt, SystemExit) as error:
        is_persons = reporter is not None and reporter.was_ended_by(error)
        if is_persons or current_thread() is main_thread():
            raise  # in other threads it would be lost, and no signal arrives there
        raise ModelError(
            say(
                "{model} can't be run: its own code ends Python ({kind}). Take that out of its "
                "forward, or raise an error there.",
                model=model.title,
                kind=type(error).__name__,
            )
        ) from error
    except HookVizError:  # of a look within the pass, which has said what is wrong
        raise
    except Exception as error:
        if reporter is not None and reporter.was_ended_by(error):
            raise
        if is_short_of_memory(error):
            raise _too_large(model, images.shape[1:]) from error
        with hooks.silenced():  # of one's own network it is the one that failed
            with private_replica(model) as other:
                failed = failing_call(
                    other, lambda: other(images.to(*device_and_dtype(other), copy=True))
                )
            count = len(images)
            raise input_error(model, images.shape[1:], error, failed, count=count) from error


def backward_pass(
    model: Model,
    value: Any,
    tensors: Sequence[Any],
    reporter: ProgressReporter | None = None,
    *,
    gradient: Tensor | None = None,
    keep_graph: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return ∂value/∂tensor for each tensor, in its shape; None where `value` depends not on it.

    An edge of the graph (`torch.autograd.graph.GradientEdge`) stands for its tensor.

    Args:
        model: whose pass it was.
        value: one number with a graph, or with `gradient` any tensor or edge of it.
        tensors: of the graph, or its edges.
        reporter: through which hooks tell how far the pass is.
        gradient: of `value`, in its shape.
        keep_graph: leave the graph for another pass.

    Shared parameters get no ``.grad``: `torch.autograd.grad` returns the gradients.

    Raises:
        ModelError: the network can't be differentiated.
    """
    try:
        return torch.autograd.grad(
            value, tensors, gradient, allow_unused=True, retain_graph=keep_graph
        )
    except Exception as error:
        if reporter is not None and reporter.was_ended_by(error):
            raise
        if is_short_of_memory(error):
            shape = getattr(tensors[0], "shape", (1, *stated_shape(model)))  # an edge has none
            raise _too_large(model, shape[1:]) from error
        if isinstance(value, GradientEdge) and isinstance(error, AttributeError):
            raise ModelError(
                say(
                    "What goes along the lines of a network is followed from torch 2.6 on, and "
                    "this is torch {version}.",
                    version=torch.__version__,
                )
            ) from error
        why = shorten(str(error).partition("\n")[0].partition(": [")[0].rstrip("."), 200)
        raise ModelError(
            say(
                "{model} can't be differentiated: {reason}. Lenses that run no pass backwards, "
                "such as summary, need no gradients.",
                model=model.title,
                reason=why,
            )
        ) from error


def _too_large(model: Model, shape: Sequence[int]) -> ModelError:
    return ModelError(
        say(
            "{model} needs more memory for {shape} numbers and what it makes of them "
            "than there is left. A smaller input or model takes less.",
            model=model.title,
            shape=times(shape),
        )
    )


def stated_shape(model: Model) -> tuple[int, ...]:
    """Return the model's input shape as far as it is known, ``(C, H, W)``.

    ``(C, L)`` of sound, ``(C, D, H, W)`` of volumes and ``(C, T, H, W)`` of video.
    """
    if model.input_shape:
        return model.input_shape
    if isinstance(model.preprocess, Preprocess):
        return model.preprocess.shape
    return 3, 224, 224


def input_error(
    model: Model,
    shape: Sequence[int],
    reason: Exception,
    failed: FailingCall | None = None,
    *,
    count: int = 1,
) -> ModelError:
    """Return the error for an input that a network can't take, with an input that works.

    That input was tried.

    Args:
        model: whose input.
        shape: of it, ``(C, H, W)``.
        reason: exception of the network.
        failed: call that raised it.
        count: number of images in the batch.
    """
    own = stated_shape(model)
    facts = {
        "model": model.title,
        "shape": times(shape),
        "layer": f"{failed}: " if failed else "",
        "reason": first_line(reason),
        "own_shape": times(own),
    }
    if count > 1 and runs_through(model, shape):
        return ModelError(
            say(
                "{model} can't take {count} images at once: {layer}{reason}. It takes one of "
                "{shape}.",
                **facts,
                count=count,
            )
        )
    if runs_through(model, own):
        return ModelError(
            say(
                "{model} can't take an input of {shape}: {layer}{reason}. It is made for "
                "{own_shape}.",
                **facts,
            )
        )
    if str(reason).startswith(_TOO_FEW):
        in_evaluation = model.train and runs_through(replace(model, train=False), shape)
        return ModelError(
            say(
                "{model} can't take an input of {shape}: {layer}{reason}. One image gives that "
                "norm one value per channel, which has no deviation.{hint}",
                **facts,
                hint=say(" Without train=True it runs.") if in_evaluation else "",
            )
        )
    return ModelError(
        say(
            "{model} can't take an input of {shape}: {layer}{reason}. Nor does {own_shape} run, "
            "which it was thought to be made for: wrap(network, example=…) says what it takes, by "
            "the arguments of a call that runs.",
            **facts,
        )
    )


_takes_shape: MutableMapping[nn.Module, dict[Any, bool]] = ByNetwork()


def runs_through(model: Model, shape: Sequence[int]) -> bool:
    """Return whether zeros of a shape, ``(C, H, W)``, run through the network; tried once."""
    tried = _takes_shape.setdefault(model.network, {})
    key = tuple(shape), model.train, model.example
    if key not in tried:
        tried[key] = True
        try:
            with private_replica(model) as replica:
                replica(torch.zeros(1, *shape).to(*device_and_dtype(replica)))
        except Exception:  # noqa: BLE001 - a person's own code can raise anything
            tried[key] = False
    return tried[key]


Result = TypeVar("Result")

_FEW_WEIGHTS = 5_000_000  # a pass takes some tens of milliseconds


def pass_without_data(
    model: Model, shape: Sequence[int], follow: Callable[[nn.Module, Tensor], Result]
) -> Result:
    """Return the result of `follow` for the network and an input of `shape`, ``(C, H, W)``.

    The catalog's networks run as meta replicas, where a pass takes milliseconds for the largest. A
    person's own code is run on zeros, as is a network whose path depends on values, and a small one
    while the first pass of shapes would load torch's compiler. If its weights have several
    precisions, that of its input is found here, the finest first.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    network = model.network
    if is_shared(network) and not _is_sooner_with_data(network):
        try:
            with _on_meta(network, shape) as (replica, images):
                return follow(replica, images)
        except Exception:  # noqa: BLE001, S110 - whatever meta tensors can't do, real ones decide
            pass
    with private_replica(model) as lent:
        find_dtype(lent, shape)
        zeros = _zeros(lent, shape)
        try:
            return follow(lent, zeros.clone())
        except HookVizError:  # of a look within the pass, which has said what is wrong
            raise
        except Exception as error:
            failed = None
            with suppress(hooks.StopForward):
                failed = failing_call(lent, lambda: lent(zeros))
            raise input_error(model, shape, error, failed) from error


def find_dtype(network: nn.Module, shape: Sequence[int]) -> None:
    """Find the finest precision that the input may have, where the weights have several."""
    several = dtypes(network)
    if len(several) == 1 or is_dtype_known(network):
        return
    for dtype in several:
        take_down_dtype(network, dtype)
        with suppress(Exception):
            network(_zeros(network, shape))
            return
    take_down_dtype(network, None)


def _zeros(network: nn.Module, shape: Sequence[int]) -> Tensor:
    return torch.zeros(1, *shape).to(*device_and_dtype(network))


def _is_sooner_with_data(network: nn.Module) -> bool:
    """Return whether a pass over zeros is faster than the imports of a pass on the meta device.

    Many meta functions import ``torch._dynamo`` when they are first called, which takes a second.
    """
    if "torch._dynamo" in sys.modules:
        return False
    return sum(weight.numel() for weight in network.parameters()) < _FEW_WEIGHTS


def pass_at_another_size(
    model: Model, shape: Sequence[int], follow: Callable[[nn.Module, Tensor], object]
) -> None:
    """Have `follow` run a replica over an input of another size, as far as the network goes.

    It may refuse the size at any layer. timm's networks of a fixed size are resized first, by
    timm's own method. The pass has no data, as in `pass_without_data`, but for a person's own code.
    """
    network = model.network
    try:
        if not is_shared(network):
            with private_replica(model) as own:
                follow(own, _zeros(own, shape))
        elif _is_sooner_with_data(network):
            with torch.inference_mode(mode=False), torch.no_grad():
                replica = _resized(network_state.replicate(network), shape)
                follow(replica, _zeros(replica, shape))
        else:
            with _on_meta(network, shape) as (replica, images):
                follow(_resized(replica, shape), images)
    except Exception:  # noqa: BLE001 - a network may refuse another size in its own way
        return


@contextmanager
def _on_meta(network: nn.Module, shape: Sequence[int]) -> Iterator[tuple[nn.Module, Tensor]]:
    """Yield a replica and an input of `shape` on the meta device."""
    dtype = device_and_dtype(network)[1]
    with torch.inference_mode(mode=False), torch.no_grad():
        yield network_state.meta_copy(network), torch.empty(1, *shape, device="meta", dtype=dtype)


def _resized(network: nn.Module, shape: Sequence[int]) -> nn.Module:
    resize: Any = getattr(network, "set_input_size", None)
    if resize is not None:
        resize(img_size=tuple(shape[1:]))
    return network
