"""Observe, pause and change the layers and parameters of a person's own network for a block."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from hookviz.errors import SettingError, UnknownNameError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.edits import edited_layer
from hookviz.hooking.hooks import Call, map_tensors
from hookviz.hooking.modules import module_named, network_of, plain_name
from hookviz.hooking.selection import Layers, chosen_layers
from hookviz.types import Model
from hookviz.wording import times


@contextmanager
def observe(
    network: nn.Module | Model,
    layers: Layers,
    see: Callable[[Call], object] | None = None,
    *,
    exclude: Layers = (),
    always_call: bool = False,
    copy: bool = True,
) -> Iterator[dict[str, Call]]:
    """Call `see` after every call of the chosen layers, or keep the last call of each.

    In a block or a decorated function. Without `see` the block gets a dictionary, which has each
    layer's last call by its name once it ran: ``seen["layer4"].output``.

    The network computes what it would compute without. The hooks are gone on every way out, and
    other people's stay. Where blocks are nested, the outer one's hooks come first. A hook sits on
    the module: it sees passes of every thread, and `see` is called in theirs. A
    `torch.nn.TransformerEncoderLayer` that is used without gradients leaves torch's fast path where
    any hook is on it or in it; that can round otherwise.

    Chosen layers that did not run are named in one `RuntimeWarning` at the end of the block, with
    the reason where it is known. A program that `torch.compile` made calls no layers: run the
    network that it was made of, or run it within ``torch.compiler.set_stance("force_eager")``.
    Layers have the names that they have without a wrapper: ``block.conv``, where ``_orig_mod.``
    and, in a `torch.nn.DataParallel`, ``module.`` may be given too. There every replica's calls are
    seen, each with its share of the batch, in no certain order. What activation checkpointing
    computes again in a backward pass is not seen again.

    Args:
        network: any module, or a `Model`; of a compiled network, a `torch.nn.DataParallel` or a
            `torch.nn.parallel.DistributedDataParallel` the module inside.
        layers: by name, pattern (``"layer3.*.conv?"``), type (`torch.nn.Conv2d`), module,
            predicate of name and module, several of those, or None for every one; ``""`` is the
            network itself.
        see: gets a `Call`: the layer's name, how many calls of it came before in this block, what
            it was given, also by keyword, and what it put out, by reference. A layer that works in
            place overwrites that later, so clone what you keep. What it raises ends the pass.
            Without it calls are kept, see `copy`.
        exclude: not these; chosen in the same ways.
        always_call: look at calls that fail too; their output is None. What `see` raises then is
            but a warning of PyTorch's.
        copy: keep copies of outputs, which nothing overwrites and gradients go through; else the
            tensors themselves, such as for ``retain_grad()``. Inputs are kept by reference.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `layers` or `exclude` can't choose, or nothing is left.
        ModelError: `network` is no module, or a TorchScript program.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> with hookviz.observe(network, ["0"]) as seen:
    ...     _ = network(torch.ones(1, 3, 8, 8))  # (N, C, H, W)
    >>> seen["0"].output.shape
    torch.Size([1, 4, 6, 6])
    >>> with hookviz.observe(network, "*", lambda call: print(call.layer, call.output.shape)):
    ...     _ = network(torch.ones(1, 3, 8, 8))  # (N, C, H, W)
    0 torch.Size([1, 4, 6, 6])
    1 torch.Size([1, 4, 6, 6])
    """
    seen: dict[str, Call] = {}

    def keep(call: Call) -> None:
        seen[call.layer] = (
            replace(call, output=map_tensors(call.output, Tensor.clone)) if copy else call
        )

    with (
        chosen_layers("observe", network, layers, exclude) as (module, chosen),
        hooks.observe(module, chosen, see or keep, always_call=always_call),
    ):
        yield seen


@contextmanager
def edit(
    network: nn.Module | Model,
    layers: Layers | Mapping[Any, Any],
    change: Any = None,
    *,
    exclude: Layers = (),
    always_call: bool = False,
) -> Iterator[None]:
    """Replace the outputs of the chosen layers, in a block or a decorated function.

    What `change` returns takes the place of the layer's output; where it returns None, that stays.
    In place of a function there can be a value of `hookviz.edits`, such as ``zero``, ``scale(2)``
    or ``replace(cap["layer3"])``; of an output of several tensors it changes the first.
    Everything else is as with `observe`, its arguments and errors too. Where blocks are nested,
    the inner one's `change` gets what the outer one's made. What activation checkpointing computes
    again is changed again, under the index of the first call.

    Args:
        network: as of `observe`.
        layers: as of `observe`; or a mapping from such layers to what is done there, in place of
            `change`: of a layer that two of its rows choose, the later one gets what the earlier
            one made.
        change: from a `Call` to the new output, or a value of `hookviz.edits`.
        exclude: as of `observe`.
        always_call: call `change` after calls that fail too, without an output; the error is
            raised all the same.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `layers` or `exclude` can't choose, or nothing is left; `change` is no edit;
            or, from within the pass, it does not fit what the layer puts out.
        ModelError: `network` is no module, or a TorchScript program.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> with hookviz.edit(network, torch.nn.Conv2d, lambda call: call.output * 0):
    ...     bool(network(torch.ones(1, 3, 8, 8)).any())  # (N, C, H, W)
    False
    >>> with hookviz.edit(network, {"0": hookviz.edits.zero, "1": lambda call: call.output + 1}):
    ...     bool((network(torch.ones(1, 3, 8, 8)) == 1).all())  # (N, C, H, W)
    True
    """
    changes = [*layers.items()] if isinstance(layers, Mapping) else [(layers, change)]
    with ExitStack() as stack:
        for selector, edited in changes:
            module, chosen = stack.enter_context(chosen_layers("edit", network, selector, exclude))
            stack.enter_context(edited_layer(module, chosen, edited, always_call=always_call))
        yield


@contextmanager
def edit_inputs(
    network: nn.Module | Model,
    layers: Layers,
    change: Callable[[Call], Any],
    *,
    exclude: Layers = (),
) -> Iterator[None]:
    """Observe or replace the inputs of the chosen layers, in a block or a decorated function.

    Everything else is as with `observe`, its arguments and errors too. Here is the time to copy
    what a layer that works in place is going to overwrite.

    Args:
        network: as of `observe`.
        layers: as of `observe`.
        change: from a `Call`, whose output is None, to what the layer shall be given: a tuple in
            place of `Call.inputs`, which are the arguments by position and then those by keyword;
            anything else in place of the first of them; None for no change.
        exclude: as of `observe`.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `layers` or `exclude` can't choose, or nothing is left; or, from within the
            pass, a tuple of another length than `Call.inputs`.
        ModelError: `network` is no module, or a TorchScript program.

    >>> network = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Flatten())
    >>> with hookviz.edit_inputs(network, "0", lambda call: call.inputs[0] + 1):
    ...     network(torch.zeros(1, 2))  # (N, C)
    tensor([[1., 1.]])
    """
    with (
        chosen_layers("edit_inputs", network, layers, exclude) as (module, chosen),
        hooks.before(module, chosen, change, recomputed=True),
    ):
        yield


@contextmanager
def breakpoint_at(
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
    >>> with hookviz.breakpoint_at(network, "0", look=lambda call: print(call.output.shape)):
    ...     _ = network(torch.ones(1, 3, 8, 8))  # (N, C, H, W)
    torch.Size([1, 4, 6, 6])
    """
    with (
        chosen_layers("breakpoint_at", network, layers, exclude) as (module, chosen),
        hooks.observe(module, chosen, look or _open_debugger),
    ):
        yield


def _open_debugger(call: Call) -> None:  # noqa: ARG001 - for who looks
    """Open the debugger in this frame, which has `call`."""
    sys.breakpointhook()  # as `breakpoint()` does, which is meant to stay in no code


Replacement = Tensor | Callable[[Tensor], Tensor]


@contextmanager
def replace_parameters(
    network: nn.Module | Model, parameters: Mapping[str, Replacement]
) -> Iterator[None]:
    """Run with other parameters, in a block or a decorated function.

    Afterwards the network has the same `torch.nn.Parameter` objects as before, in which nothing
    was written, on every way out. A parameter that several layers share is replaced in all of
    them, and for every thread.

    Args:
        network: as of `observe`.
        parameters: by the names of ``network.named_parameters()``, tensors of the same shape, or
            functions that make one of the parameter's values. They are copied, to the
            parameter's type and device, so that training in the block writes to nobody's tensor;
            a `torch.nn.Parameter` is used as it is, and keeps its gradient.

    Raises:
        UnknownNameError: the parameter does not exist, with the nearest names.
        ModelError: `network` is no module.
        SettingError: a value is no tensor or of another shape, or a shared parameter gets two.

    >>> network = torch.nn.Linear(2, 2)
    >>> with hookviz.replace_parameters(network, {"weight": torch.eye(2), "bias": torch.zeros(2)}):
    ...     network(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """
    wrapped, network = network, network_of(network)
    listed = network.named_parameters(remove_duplicate=False)
    every = {plain_name(name): parameter for name, parameter in listed}
    new: dict[int, tuple[str, nn.Parameter]] = {}
    for key, value in parameters.items():
        name = key if key in every else plain_name(key, wrapped)
        if name not in every:
            raise UnknownNameError(f"parameter in this {type(network).__name__}", name, every)
        original = every[name]
        if id(original) in new:
            raise SettingError(
                f"{new[id(original)][0]} and {name} are one parameter of this "
                f"{type(network).__name__}; give it one value."
            )
        new[id(original)] = name, _parameter(name, value, original)
    with ExitStack() as originals:
        for name, original in every.items():
            if id(original) in new:
                owner, _, attribute = name.rpartition(".")
                module = module_named(network, owner)
                # Not into `_parameters`: recurrent layers keep a list of their weights beside it.
                originals.callback(setattr, module, attribute, original)
                setattr(module, attribute, new[id(original)][1])
        yield


def _parameter(name: str, value: Replacement, original: nn.Parameter) -> nn.Parameter:
    replacement = value(original.detach().clone()) if callable(value) else value
    if not isinstance(replacement, Tensor):
        raise SettingError(f"{name} needs a tensor, not {shorten(repr(replacement))}.")
    if replacement.shape != original.shape:
        raise SettingError(
            f"{name} has the shape {times(original.shape) or 'of one number'}; a tensor of "
            f"{times(replacement.shape) or 'one number'} can't stand for it."
        )
    if isinstance(replacement, nn.Parameter):
        return replacement
    values = replacement.detach().to(original.device, original.dtype, copy=True)
    return nn.Parameter(values, requires_grad=original.requires_grad)
