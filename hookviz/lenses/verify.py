"""Whether what is shown is true: every layer computes again, from the input that it was given.

Before a layer runs, its input is copied, since an in-place layer writes over it. When it has run,
the same layer of another replica is given that copy, and what comes out is held against what the
hook recorded, number by number; for conv layers also against what HookViz shows people.

Convolutions and linear layers are computed once more in double precision by other code. By the
usual bound on a sum's rounding error (Higham, "Accuracy and Stability of Numerical Algorithms",
section 3.1) the network may be off by a small multiple of ``Σ |w · x| + |b|``, which is at most
``‖w‖₁ · max |x| + |b|`` anywhere in a channel.
"""

import copy
import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import engine
from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import Telling, forward_pass, private_replica
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.types import Address
from hookviz.wording import number

_MOST_BYTES = 512 * 1024**2  # of shown conv activations that are held for the comparison
_ROUNDING = 1e-5  # of single precision, see the head of this file
_TF32_EPSILON = 2.0**-10  # what a GPU may compute float32 convolutions with
_MOST_DOUBLES = 1 << 20  # weights at a time
_SHOWN_SHARE = 0.25  # of the work, for the record that people are shown
_HEAD = ("layer", "kind", "numbers", "largest difference", "rounding error", "verdict")


@dataclass(slots=True)
class _Check:
    """What was found about one layer, over all its calls.

    Attributes:
        kind: the module's class.
        compared: how many numbers.
        difference: the largest between the record and the second computation.
        relative: the largest distance from the double-precision result, by that result's largest
            size; NaN where there is no such result.
        agrees: whether every call is within rounding of both.
        problem: why it does not agree, or why nothing was compared.
    """

    kind: str
    compared: int = 0
    difference: float = 0.0
    relative: float = math.nan
    agrees: bool = True
    problem: str = ""

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if not self.agrees:
            return "differs"
        if not self.compared:
            return "not checked"
        return "within rounding" if self.difference else "exact"


def run(subject: Subject) -> LensOutput:
    """A verdict, how many digits of each sum of products are right, and a row per layer.

    "Exactly" means that every number is the same to the last bit; NaN agrees with NaN. The layers
    are those without parts, and every convolution and linear layer. The digits that are right are
    ``−log₁₀`` of the largest difference from the double-precision result by the largest size of
    that result.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: no layer puts out numbers that can be checked.
    """
    checks = _checks(subject)
    listed = tuple(checks.values())
    if not any(check.compared for check in listed):
        raise HookVizError(
            f"No layer of {subject.model.title} can be checked: none puts out numbers again when "
            "it is called again. shapesnet can be checked."
        )
    relative = np.array([check.relative for check in listed])
    rows = tuple(_row(name, check) for name, check in checks.items())
    panels = [_verdict(checks), *_unchecked(checks), *_chart(checks)]
    return (*panels, TablePanel("Every layer", _HEAD, rows)), {
        "difference": np.array([check.difference for check in listed]),
        "relative": relative,
        "compared": np.array([check.compared for check in listed]),
        "agrees": np.array([check.agrees for check in listed]),
    }


def _checks(subject: Subject) -> Mapping[str, _Check]:
    """Every layer checked in one pass, one at a time, so that nothing piles up."""
    network, shown = subject.model.network, _shown(subject)
    leaves = {info.name for info in subject.survey.layers}
    names = [
        name
        for name in subject.survey.calls
        if name in leaves or isinstance(network.get_submodule(name), nn.Linear | _ConvNd)
    ]
    with private_replica(subject.model) as replica, private_replica(subject.model) as second:
        watch = _Watch(subject, names, second, shown)
        with hooks.before(replica, names, watch.before), hooks.observe(replica, names, watch.after):
            forward_pass(subject.model, replica, subject.model_input.tensor, watch.telling)
    return watch.checks


def _shown(subject: Subject) -> Mapping[str, Tensor]:
    """What HookViz shows of the conv layers, by written address; empty where that is too much."""
    names = [info.name for info in subject.convs]
    if not names or sum(subject.survey.nbytes[name] for name in names) > _MOST_BYTES:
        return {}
    found = engine.capture(
        subject.model,
        subject.model_input,
        names,
        logits=False,
        cache=subject.cache,
        progress=lambda share: subject.progress(_SHOWN_SHARE * share),
    )
    return {address: activation.values for address, activation in found.items()}


class _Watch:
    """Copies each layer's input before it runs, and checks its output as soon as it has run."""

    def __init__(
        self, subject: Subject, names: list[str], second: nn.Module, shown: Mapping[str, Tensor]
    ) -> None:
        self.checks: dict[str, _Check] = {}
        self.telling = Telling(subject.progress)
        self._modules = {name: second.get_submodule(name) for name in names}
        self._shown = shown
        self._total = sum(subject.survey.calls[name] for name in names)
        self._done = 0
        self._given: dict[str, list[tuple[Any, ...] | None]] = {name: [] for name in names}

    def before(self, call: hooks.Call) -> None:
        """Copy what a layer is about to take in."""
        try:
            # A deep copy keeps the strides, so the second call takes the same way through torch.
            given = copy.deepcopy(call.inputs)
        except Exception:  # noqa: BLE001 - whatever it is, it is no tensor, and said on the page
            given = None
        self._given[call.layer].append(given)

    def after(self, call: hooks.Call) -> None:
        """Check what a layer has put out."""
        module = self._modules[call.layer]
        check = self.checks.setdefault(call.layer, _Check(type(module).__name__))
        self._check(check, module, call, self._given[call.layer].pop())
        self._done += 1
        share = _SHOWN_SHARE + (1 - _SHOWN_SHARE) * self._done / self._total
        self.telling.share(share)

    def _check(
        self, check: _Check, module: nn.Module, call: hooks.Call, given: tuple[Any, ...] | None
    ) -> None:
        if given is None:
            check.problem = "is given something that can't be copied"
            return
        try:
            again = module(*copy.deepcopy(given))
        except Exception as error:  # noqa: BLE001 - the network's own, and said on the page
            check.problem = f"can't be called again: {shorten(str(error))}"
            return
        made = list(hooks.tensors_in(again))
        agrees = _compare(check, list(hooks.tensors_in(call.output)), made)
        for path, tensor in made:
            shown = self._shown.get(str(Address(call.layer, call.index, path)))
            if shown is not None:
                alone = tensor[0] if tensor.ndim > 1 and len(tensor) == 1 else tensor
                agrees &= _compare(check, [(path, shown)], [(path, alone.to("cpu", shown.dtype))])
                check.compared -= shown.numel()  # the same numbers once more
        if not agrees:
            if len(given) > 1 and len(inspect.signature(module.forward).parameters) > len(given):
                check.problem = "may have been given arguments by name, which a hook does not tell"
                check.compared, check.difference = 0, 0.0
                return
            twice = list(hooks.tensors_in(module(*copy.deepcopy(given))))
            check.problem = (
                "puts out the same again for this input, but not what was recorded"
                if _compare(_Check(""), made, twice)
                else "puts out other numbers each time: it is random or remembers something"
            )
        elif made and not _close_in_double(check, module, given, call.output):
            check.problem, agrees = "is further from the exact sums than rounding explains", False
        check.agrees &= agrees


Tensors = list[tuple[tuple[str, ...], Tensor]]
"""Tensors by their paths inside what holds them."""


def _compare(check: _Check, recorded: Tensors, again: Tensors) -> bool:
    """Whether both are the same but for rounding; counts and differences go into `check`."""
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
        difference = float(_distance(ours, theirs).max())
        size = float(torch.nan_to_num(ours.abs().double(), 0, 0, 0).max())
        check.difference = max(check.difference, difference)
        agrees &= difference <= _rounding(ours) * size
    return agrees


def _distance(ours: Tensor, theirs: Tensor) -> Tensor:
    """How far apart two tensors are, float64: 0 for equal or both NaN, ∞ where only one is NaN."""
    ours, theirs = (
        tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        for tensor in (ours, theirs)
    )
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    return (ours - theirs).abs().nan_to_num(math.inf, math.inf).masked_fill(same, 0)


def _close_in_double(check: _Check, module: nn.Module, given: tuple[Any, ...], output: Any) -> bool:
    """Whether a sum of products is what double precision makes of it; True for other layers."""
    image = given[0] if len(given) == 1 else None
    if not (isinstance(image, Tensor) and image.is_floating_point()):
        return True
    exact = _in_double(module, image)
    if exact is None:
        return True
    assert isinstance(module.weight, Tensor)
    sizes = [part.abs().flatten(1).sum(1) for part in _doubles(module.weight)]
    bound = torch.cat(sizes) * image.abs().max().double()
    if isinstance(module.bias, Tensor):
        bound += module.bias.double().abs()
    if isinstance(module, nn.Conv2d):  # its channels are not the last dimension
        bound = bound[:, None, None]
    # what overflows in the network's own precision is as infinite in ours
    far = exact.to(output.dtype).isinf()
    distance = _distance(output, torch.where(far, exact.to(output.dtype).double(), exact))
    largest = float(exact.abs().nan_to_num(0, 0, 0).max())
    relative = float(distance.max()) / (largest or 1.0)
    check.relative = relative if math.isnan(check.relative) else max(check.relative, relative)
    return bool((distance <= (_rounding(output) * bound).nan_to_num(math.inf)).all())


def _in_double(module: nn.Module, image: Tensor) -> Tensor | None:
    """What a Conv2d or Linear makes of `image`, float64, where it is no more than its kind."""
    forward = type(module).forward
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        given = image.double()
        exact = torch.cat([given @ part.T for part in _doubles(module.weight)], -1)
        return exact if module.bias is None else exact + module.bias.double()
    if not isinstance(module, nn.Conv2d) or forward is not nn.Conv2d.forward:
        return None
    if type(module)._conv_forward is not nn.Conv2d._conv_forward:
        return None
    padded, padding = image.double(), module.padding
    if module.padding_mode != "zeros":
        pads = module._reversed_padding_repeated_twice
        padded, padding = F.pad(padded, pads, mode=module.padding_mode), (0, 0)
    return F.conv2d(
        padded,
        module.weight.double(),
        None if module.bias is None else module.bias.double(),
        module.stride,
        padding,
        module.dilation,
        module.groups,
    )


def _doubles(weight: Tensor) -> Iterator[Tensor]:
    """Some rows of a layer's weights at a time in double precision: there can be 100 million."""
    for part in torch.split(weight, max(1, _MOST_DOUBLES // weight[0].numel())):
        yield part.double()


def _rounding(tensor: Tensor) -> float:
    if not tensor.is_floating_point():
        return 0.0 if not tensor.is_complex() else _ROUNDING
    epsilon = torch.finfo(tensor.dtype).eps
    if tensor.device.type != "cpu":
        epsilon = max(epsilon, _TF32_EPSILON)
    return max(_ROUNDING, 2 * epsilon)


def _verdict(checks: Mapping[str, _Check]) -> TextPanel:
    told = {name: check for name, check in checks.items() if check.verdict != "not checked"}
    wrong = {name: check for name, check in told.items() if not check.agrees}
    exact = sum(check.verdict == "exact" for check in told.values())
    count = f"{exact:,} of {len(told):,} layers agree exactly"
    if wrong:
        named = "; ".join(
            f"{name} ({check.kind}) {check.problem}" for name, check in list(wrong.items())[:8]
        )
        more = f"; and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        does = "does" if len(wrong) == 1 else "do"
        return TextPanel(f"{count}, and {len(wrong):,} {does} not agree: {named}{more}.", "bad")
    close = len(told) - exact
    says = f"{count}{f', {close:,} to within rounding' if close else ''}."
    numbers = sum(check.compared for check in told.values())
    return TextPanel(
        f"{says} {numbers:,} numbers were computed a second time from the recorded inputs.", "good"
    )


def _unchecked(checks: Mapping[str, _Check]) -> tuple[Panel, ...]:
    left = [
        f"{name} ({check.kind}) {check.problem or 'puts out no numbers'}"
        for name, check in checks.items()
        if check.verdict == "not checked"
    ]
    if not left:
        return ()
    more = f"; and {len(left) - 4} more" if len(left) > 4 else ""
    return (TextPanel(f"Not checked: {'; '.join(left[:4])}{more}.", "note"),)


def _chart(checks: Mapping[str, _Check]) -> tuple[Panel, ...]:
    sums = {name: check.relative for name, check in checks.items() if check.relative > 0}
    if not sums:
        return ()
    return (
        ChartPanel(
            "How many digits are right",
            tuple(sums),
            {"digits": -np.log10(list(sums.values()))},
            unit="decimal digits",
            caption="Conv and linear layers against the same sums in double precision, at the "
            "place where they are furthest apart. Single precision keeps about 7 digits.",
        ),
    )


def _row(name: str, check: _Check) -> tuple[str | int | float, ...]:
    error = "–" if math.isnan(check.relative) else number(check.relative)
    return name, check.kind, check.compared, number(check.difference), error, check.verdict


LENS = Lens(
    slug="verify",
    title="Computed again",
    group="Checks",
    sentence="Whether what is shown is what the network computes: every layer is computed again.",
    run=run,
)
