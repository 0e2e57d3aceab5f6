"""Verify recorded outputs: recompute each layer from its input, and compare within rounding.

The pass is one of its own and takes nothing over from the record that it checks. Before a layer
runs, its input is copied, since an in-place layer writes over it. As soon as it has run, its output
is compared with three things: what HookViz recorded of that call, what the same layer makes of the
copied input, and for sums of products the same sum in double precision by other code. In a network
of the catalog the same layer is that of another replica; in a person's own network it is the very
layer, run again within its hook.

By the usual bound on a sum's rounding error (Higham, "Accuracy and Stability of Numerical
Algorithms", section 3.1) the network may be off by a small multiple of ``Σ |w · x| + |b|``, which
is at most ``‖w‖₁ · max |x| + |b|`` anywhere in a channel.
"""

import copy
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from hookviz.drawing.charts import Chart, titled_figure
from hookviz.errors import shorten
from hookviz.explaining.layers.layer_call import (
    iter_double_rows,
    output_in_float64,
    relative_tolerance,
)
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.own_network import buffers_put_back, generators, put_generators_back
from hookviz.hooking.torch_functions import kind_of
from hookviz.language.saying import mark, say
from hookviz.types import ActivationKey, Model, ModelInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(slots=True)
class LayerCheck:
    """Result of checking one layer, over all its calls.

    Attributes:
        kind: the module's class.
        compared: how many numbers were compared.
        difference: the largest between the layer's output, the record and the recomputation.
        relative: the largest distance from the double-precision result, by that result's largest
            size; NaN without that result.
        agrees: whether every call is within rounding of all of them.
        recorded: whether the recorded outputs that people see were among what was compared.
        problem: why it does not agree, or why nothing was compared.
    """

    kind: str
    compared: int = 0
    difference: float = 0.0
    relative: float = math.nan
    agrees: bool = True
    recorded: bool = False
    problem: str = ""

    @property
    def verdict(self) -> str:
        """Verdict in a word or two."""
        if not self.agrees:
            return mark("differs")
        if not self.compared:
            return mark("not checked")
        return mark("within rounding") if self.difference else mark("exact")


@dataclass(frozen=True, eq=False, slots=True)
class Verification:
    """Every layer of a pass against its recomputation.

    Attributes:
        checks: of each layer, by its name, in order of execution.
        is_record_checked: whether the activations that `capture` gives were compared too; not where
            those of the conv layers take more than 512 MiB.
    """

    checks: Mapping[str, LayerCheck] = field(repr=False)
    is_record_checked: bool

    @property
    def agrees(self) -> bool:
        """Whether every layer that was checked is within rounding."""
        return not self.wrong

    @property
    def checked(self) -> Mapping[str, LayerCheck]:
        """The layers that could be compared or that differ, by name."""
        return {name: each for name, each in self.checks.items() if each.verdict != "not checked"}

    @property
    def wrong(self) -> Mapping[str, LayerCheck]:
        """The layers that differ by more than rounding, by name."""
        return {name: each for name, each in self.checked.items() if not each.agrees}

    @property
    def difference(self) -> NDArray[np.float64]:
        """Largest difference of each layer, ``(layers,)``."""
        return np.array([each.difference for each in self.checks.values()])

    @property
    def relative(self) -> NDArray[np.float64]:
        """Largest distance from the double-precision result by its largest size, ``(layers,)``."""
        return np.array([each.relative for each in self.checks.values()])

    @property
    def chart(self) -> Chart:
        """Decimal digits that are right, ``−log₁₀`` of `relative`, of each sum of products."""
        sums = {name: check.relative for name, check in self.checks.items() if check.relative > 0}
        digits = {say("digits"): -np.log10(list(sums.values()))}
        title, unit = say("How many digits are right"), say("decimal digits")
        return Chart(title, tuple(sums), digits, unit=unit)

    def figure(self) -> "Figure":
        """Draw how many decimal digits of each conv and linear layer are right, as bars."""
        return titled_figure(self.chart)


def recompute(
    model: Model,
    model_input: ModelInput,
    layers: Mapping[str, int],
    record: Mapping[str, Tensor],
    reporter: ProgressReporter,
) -> Mapping[str, LayerCheck]:
    """Check every layer in one pass, one call at a time, so that memory stays bounded.

    `layers` holds how often each layer is expected to run. `record` holds the recorded outputs by
    written address, without a batch dimension of 1.

    Raises:
        ModelError: the network can't take this input.
    """
    with private_replica(model) as network, private_replica(model) as second:
        recomputation = _Recomputation(
            second, layers, record, reporter, is_very_network=second is network
        )
        with (
            hooks.before(network, layers, recomputation.before),
            hooks.observe(network, layers, recomputation.after),
        ):
            forward_pass(model, network, model_input.tensor, reporter)
    recomputation.report_missing_calls()
    return recomputation.checks


class _Recomputation:
    """Copies each layer's input before it runs, and checks its output as soon as it has run.

    Attributes:
        checks: of each layer, by its name.
    """

    def __init__(
        self,
        network: nn.Module,
        layers: Mapping[str, int],
        record: Mapping[str, Tensor],
        reporter: ProgressReporter,
        *,
        is_very_network: bool,
    ) -> None:
        """Run layers of `network` again, with `is_very_network` of the one that is checked."""
        self.checks: dict[str, LayerCheck] = {}
        self._modules = {name: network.get_submodule(name) for name in layers}
        self._hooked = {
            name
            for name, module in self._modules.items()
            if any(part._forward_hooks for part in module.modules())
        }
        self._record = dict(record)
        self._reporter = reporter
        self._is_very_network = is_very_network
        self._runs_again = False
        self._calls = Counter[str]()
        self._buffers: _Buffers = []
        self._waiting: dict[str, list[tuple[int, Any, _Buffers]]] = {name: [] for name in layers}

    def before(self, call: hooks.Call) -> None:
        if self._runs_again:
            return
        try:
            # A deep copy keeps the strides, so the second call runs the same code as the first.
            arguments = copy.deepcopy(call.arguments)
        except Exception:  # noqa: BLE001 - an object that can't be copied, which the page says
            arguments = None
        buffers = _buffers_of(self._modules[call.layer]) if self._is_very_network else []
        self._waiting[call.layer].append((self._calls[call.layer], arguments, buffers))
        self._calls[call.layer] += 1

    def after(self, call: hooks.Call) -> None:
        if self._runs_again:
            return
        index, arguments, buffers = self._waiting[call.layer].pop()
        module = self._modules[call.layer]
        check = self.checks.setdefault(call.layer, LayerCheck(type(module).__name__))
        output = _numbers_in(call.output)
        self._compare_with_record(check, ActivationKey(call.layer, index), output)
        if call.layer in self._hooked:
            pass  # such a hook may change the output; the layer alone does not
        elif arguments is None:
            check.problem = check.problem or say("is given or holds something that can't be copied")
        else:
            with self._apart(module, buffers):
                self._compare_with_recomputation(check, module, arguments, output)
        self._reporter.step()

    def report_missing_calls(self) -> None:
        for address in self._record:
            layer = ActivationKey.read(address).layer
            check = self.checks.setdefault(layer, LayerCheck(type(self._modules[layer]).__name__))
            check.agrees, check.difference = False, math.inf
            check.problem = say(
                "was recorded as {address}, and a second pass does not run that", address=address
            )

    def _compare_with_record(
        self, check: LayerCheck, call: ActivationKey, output: "Tensors"
    ) -> None:
        for path, tensor in output:
            recorded = self._record.pop(str(replace(call, path=path)), None)
            if recorded is None:
                continue
            unbatched = tensor if tensor.shape == recorded.shape else tensor[0]
            check.recorded = True
            comparison = LayerCheck("")
            output_now = [(path, unbatched.to("cpu", recorded.dtype))]
            if not _compare(comparison, [(path, recorded)], output_now):
                check.agrees = False
                check.problem = say("puts out something else than what was recorded of it")
            check.difference = max(check.difference, comparison.difference)

    def _compare_with_recomputation(
        self, check: LayerCheck, module: nn.Module, arguments: Any, output: "Tensors"
    ) -> None:
        try:
            again = self._run_again(module, arguments)
        except Exception as error:  # noqa: BLE001 - the network's own, and said on the page
            check.problem = check.problem or say(
                "can't be called again: {error}", error=shorten(str(error))
            )
            return
        if not _compare(check, output, again):
            check.agrees = False
            twice = self._run_again(module, arguments)
            check.problem = check.problem or (
                say("puts out the same again for this input, but not what was recorded")
                if _compare(LayerCheck(""), again, twice)
                else say("puts out other numbers each time: it is random or remembers something")
            )
        elif is_parametrized(module) and module.training:
            pass  # weights such as those of a spectral norm are others when they are read again
        elif again and not _close_in_double(check, module, arguments, output):
            check.agrees = False
            check.problem = say("is further from the exact sums than rounding explains")

    def _run_again(self, module: nn.Module, arguments: Any) -> "Tensors":
        """Run the module without its hooks on copies of the arguments, and return the tensors."""
        args, kwargs = copy.deepcopy(arguments)
        for table, name, buffer, values in self._buffers:
            table[name] = buffer.copy_(values)
        return _numbers_in(module.forward(*args, **kwargs))

    @contextmanager
    def _apart(self, module: nn.Module, buffers: "_Buffers") -> Iterator[None]:
        """Keep what the module does in the block from the pass that goes on behind it.

        The buffers have the values that they had before its call.
        """
        if not self._is_very_network:
            yield
            return
        state, self._runs_again = generators(), True
        try:
            with buffers_put_back(module):
                self._buffers = buffers
                yield
        finally:
            self._runs_again = False
            put_generators_back(state)


_Buffers = list[tuple[dict[str, Any], str, Tensor, Tensor]]
"""Table, name, buffer and a copy of its values, of each buffer of a module."""


def _buffers_of(module: nn.Module) -> _Buffers:
    return [
        (part._buffers, name, buffer, buffer.detach().clone())
        for part in module.modules()
        for name, buffer in part._buffers.items()
        if buffer is not None and not buffer.is_meta
    ]


Tensors = list[tuple[tuple[str, ...], Tensor]]
"""Tensors by their paths inside what holds them."""


def _numbers_in(output: Any) -> Tensors:
    """Return the tensors that have values, as ordinary ones."""
    tensors = hooks.plain_tensors_in(output)
    return [(path, tensor) for path, tensor in tensors if not tensor.is_meta]


def _compare(check: LayerCheck, recorded: Tensors, again: Tensors) -> bool:
    """Compare within rounding; counts and differences are added to `check`."""
    if [(path, tensor.shape) for path, tensor in recorded] != [
        (path, tensor.shape) for path, tensor in again
    ]:
        check.difference = math.inf
        return False
    agrees = True
    for (_, ours), (_, theirs) in zip(recorded, again, strict=True):
        check.compared += ours.numel()
        if torch.equal(ours, theirs):
            continue
        difference = float(distance_of(ours, theirs).max())
        size = float(torch.nan_to_num(ours.abs().double(), 0, 0, 0).max())
        check.difference = max(check.difference, difference)
        agrees &= difference <= relative_tolerance(ours) * size
    return agrees


def distance_of(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return |ours − theirs|, float64: 0 for equal or both NaN, infinite where one alone is NaN."""
    ours, theirs = (
        tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        for tensor in (ours, theirs)
    )
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    return (ours - theirs).abs().nan_to_num(math.inf, math.inf).masked_fill(same, 0)


def _close_in_double(
    check: LayerCheck,
    module: nn.Module,
    arguments: tuple[tuple[Any, ...], Mapping[str, Any]],
    outputs: Tensors,
) -> bool:
    """Return whether sums of products are near those in double precision; True for other layers."""
    args, kwargs = arguments
    image = args[0] if len(args) == 1 and not kwargs else None
    output = outputs[0][1]
    if not (isinstance(image, Tensor) and image.is_floating_point()) or kind_of(image):
        return True
    exact = output_in_float64(module, image)
    if exact is None:
        return True
    assert isinstance(module.weight, Tensor)
    sizes = [part.abs().flatten(1).sum(1) for part in iter_double_rows(module.weight)]
    bound = torch.cat(sizes) * image.abs().max().double()
    if isinstance(module.bias, Tensor):
        bound += module.bias.double().abs()
    if isinstance(module, nn.Conv2d):  # its channels are not the last dimension
        bound = bound[:, None, None]
    # what overflows in the network's own precision is as infinite in ours
    far = exact.to(output.dtype).isinf()
    distance = distance_of(output, torch.where(far, exact.to(output.dtype).double(), exact))
    largest = float(exact.abs().nan_to_num(0, 0, 0).max())
    relative = float(distance.max()) / (largest or 1.0)
    check.relative = relative if math.isnan(check.relative) else max(check.relative, relative)
    return bool((distance <= (relative_tolerance(output) * bound).nan_to_num(math.inf)).all())
