"""Every layer computes again: the recorded output against one made anew from the recorded input.

The pass is one of its own, on a full copy of the network, and takes nothing over from the record
that it checks: not its replica, not its version counters, not its order. Before a layer runs, its
input is copied, since an in-place layer writes over it. As soon as it has run, its output is held
against three things: what HookViz recorded of that call for people to see, what the same layer of
another full copy makes of the copied input, and for sums of products the same sum in double
precision by other code. Of a network that does more than compute, the other copy is made of the
layer as it is just before its call, with all that it remembers by then.
"""

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from hookviz.errors import shorten
from hookviz.explaining.layer_check import LayerCheck, Tensors, close_in_double, compare
from hookviz.hooking import hooks, replicas
from hookviz.hooking.conduct import only_computes
from hookviz.hooking.forward_pass import Telling, forward_pass
from hookviz.types import Address, Model, ModelInput


def recompute(
    model: Model,
    model_input: ModelInput,
    layers: Mapping[str, int],
    record: Mapping[str, Tensor],
    telling: Telling,
) -> Mapping[str, LayerCheck]:
    """Every layer checked in one pass, one call at a time, so that nothing piles up.

    Args:
        model: whose network is checked.
        model_input: what it is given.
        layers: the layers' names, each with how often it is expected to run.
        record: what was recorded of layers, without a batch dimension of 1, by written address.
        telling: told a step after every call.

    Raises:
        ModelError: the network can't take this input.
    """
    with torch.inference_mode(mode=False), torch.no_grad():
        network, second = (replicas.full_copy(model.network) for _ in range(2))
        recomputation = _Recomputation(
            network, second, layers, record, telling, weights_stay=only_computes(model.network)
        )
        with (
            hooks.before(network, layers, recomputation.before),
            hooks.observe(network, layers, recomputation.after),
        ):
            forward_pass(model, network, model_input.tensor, telling)
    recomputation.check_the_rest()
    return recomputation.checks


class _Recomputation:
    """Copies each layer's input before it runs, and checks its output as soon as it has run."""

    def __init__(
        self,
        network: nn.Module,
        second: nn.Module,
        layers: Mapping[str, int],
        record: Mapping[str, Tensor],
        telling: Telling,
        *,
        weights_stay: bool,
    ) -> None:
        self.checks: dict[str, LayerCheck] = {}
        self._running = {name: network.get_submodule(name) for name in layers}
        self._modules = {name: second.get_submodule(name) for name in layers}
        self._record = dict(record)
        self._weights_stay = weights_stay
        self._telling = telling
        self._waiting: dict[str, list[tuple[nn.Module, Any]]] = {name: [] for name in layers}

    def before(self, call: hooks.Call) -> None:
        """Copy what a layer is about to take in."""
        try:
            # A deep copy keeps the strides, so the second call takes the same way through torch.
            arguments = copy.deepcopy(call.arguments)
        except Exception:  # noqa: BLE001 - whatever it is, it is no tensor, and said on the page
            arguments = None
        module = self._modules[call.layer]
        if not self._weights_stay:
            try:
                module = _as_it_is(self._running[call.layer])
            except Exception:  # noqa: BLE001 - whatever it holds, and said on the page
                arguments = None
        self._waiting[call.layer].append((module, arguments))

    def after(self, call: hooks.Call) -> None:
        """Check what a layer has put out."""
        module, arguments = self._waiting[call.layer].pop()
        check = self.checks.setdefault(call.layer, LayerCheck(type(module).__name__))
        output = list(hooks.tensors_in(call.output))
        self._against_record(check, call, output)
        if arguments is None:
            check.problem = check.problem or "is given or holds something that can't be copied"
        else:
            self._against_itself(check, module, arguments, output)
        self._telling.step()

    def check_the_rest(self) -> None:
        """Take in what was recorded of calls that this pass did not make."""
        for address in self._record:
            layer = address.partition("#")[0].partition("[")[0]
            check = self.checks.setdefault(layer, LayerCheck(type(self._modules[layer]).__name__))
            check.agrees, check.difference = False, math.inf
            check.problem = f"was recorded as {address}, and a second pass does not run that"

    def _against_record(self, check: LayerCheck, call: hooks.Call, output: Tensors) -> None:
        for path, tensor in output:
            recorded = self._record.pop(str(Address(call.layer, call.index, path)), None)
            if recorded is None:
                continue
            alone = tensor[0] if tensor.ndim > 1 and len(tensor) == 1 else tensor
            check.recorded = True
            beside = LayerCheck("")
            if not compare(beside, [(path, recorded)], [(path, alone.to("cpu", recorded.dtype))]):
                check.agrees = False
                check.problem = "puts out something else than what was recorded of it"
            check.difference = max(check.difference, beside.difference)

    def _against_itself(
        self, check: LayerCheck, module: nn.Module, arguments: Any, output: Tensors
    ) -> None:
        positional, named = arguments
        try:
            again = list(hooks.tensors_in(_called(module, positional, named)))
        except Exception as error:  # noqa: BLE001 - the network's own, and said on the page
            check.problem = check.problem or f"can't be called again: {shorten(str(error))}"
            return
        if not compare(check, output, again):
            check.agrees = False
            twice = list(hooks.tensors_in(_called(module, positional, named)))
            check.problem = check.problem or (
                "puts out the same again for this input, but not what was recorded"
                if compare(LayerCheck(""), again, twice)
                else "puts out other numbers each time: it is random or remembers something"
            )
        elif not self._weights_stay and is_parametrized(module):
            pass  # another look at its weights may make others of them
        elif again and not close_in_double(check, module, positional, named, output):
            check.agrees = False
            check.problem = "is further from the exact sums than rounding explains"


def _as_it_is(module: nn.Module) -> nn.Module:
    with torch.inference_mode(mode=False):  # a network's own may be on
        copied = replicas.full_copy(module)
    hooks.forget(copied)
    return copied


def _called(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return module(*copy.deepcopy(positional), **copy.deepcopy(named))
