"""How many conv weights can go before the prediction does: the smallest ones first.

Unstructured magnitude pruning over all layers at once, as in Han et al., "Learning both Weights
and Connections for Efficient Neural Networks" (2015), without training afterwards. The same weights
go as with PyTorch's ``prune.global_unstructured`` and ``L1Unstructured``, which rank them anew for
every share; here they are sorted once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.drawing.panels import ChartPanel, TablePanel, TextPanel
from hookviz.errors import ModelError
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import Telling
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import RealNumber, WholeNumber
from hookviz.wording import number

_HEAD = ("removed (%)", "weights left", "prediction", "its probability (%)", "score of {}", "same?")


def run(subject: Subject, *, most: float, step: int) -> LensOutput:
    """The prediction at growing shares of pruned weights.

    At share s the n·s conv weights with the smallest |w|, n in all, are set to 0; equal ones go
    together, so it can be more. Biases and linear layers stay. Values, one per share: ``shares``
    asked for and ``removed``, both 0…1, ``logits`` ``(shares, classes)``, ``top`` the likeliest
    class, ``top_probability``, and ``logit`` and ``probability`` of the class that the whole
    network predicts.

    Raises:
        ModelError: no conv layer has weights of its own, or the network no finite class scores.
    """
    first = subject.top_class
    assert subject.scored.logits is not None
    if not bool(torch.isfinite(subject.scored.logits).all()):
        raise ModelError(
            f"{subject.model.title} gives scores of NaN or infinity for this image, so there is no "
            "prediction to lose. The lens health says in which layer they begin."
        )
    shares = np.array([*np.arange(0, most, step), most]) / 100
    weights = _weights(subject)
    sizes = _sorted_sizes(list(weights.values()))
    logits, removed = [], []
    calls = {info.name: info.calls for info in subject.survey.layers}
    telling = Telling(subject.progress, len(shares) * sum(calls.values()))
    for share in shares:
        count = round(float(share) * len(sizes))
        limit = float(sizes[count - 1]) if count else -1.0
        removed.append(np.searchsorted(sizes, limit, side="right") / len(sizes))
        replica = replicas.replicate(subject.model.network, _without(weights, limit))
        with torch.no_grad(), hooks.observe(replica, calls, lambda _call: telling.step()):
            scores = class_scores(subject.model, replica, subject.model_input.tensor, telling)
        logits.append(scores.to("cpu", torch.float32))
    scores = torch.cat(logits)
    chances = scores.softmax(1)
    top = scores.argmax(1).numpy()
    values = {
        "shares": shares,
        "removed": np.array(removed),
        "logits": scores.numpy(),
        "top": top,
        "top_probability": chances.max(1).values.numpy(),
        "logit": scores[:, first].numpy(),
        "probability": chances[:, first].numpy(),
    }
    return _panels(subject, values, first, len(sizes), len(weights)), values


def _weights(subject: Subject) -> dict[int, Tensor]:
    """The shared weights of the conv layers that run, by their identity."""
    modules = dict(subject.model.network.named_modules())
    own = [modules[info.name]._parameters.get("weight") for info in subject.convs]
    weights = {id(weight): weight for weight in own if weight is not None}
    if not weights:
        raise ModelError(
            f"{subject.model.title} has no conv layer with weights of its own to prune. "
            "Most models of the catalog have, for example shapesnet."
        )
    return weights


def _sorted_sizes(weights: list[Tensor]) -> NDArray[np.float32]:
    sizes = torch.cat([weight.detach().abs().flatten().cpu().float() for weight in weights]).numpy()
    sizes.sort()  # NumPy's takes a twentieth of the time of torch's
    return sizes


def _without(weights: dict[int, Tensor], limit: float) -> Callable[[Tensor], Tensor]:
    """What makes a new weight with 0 wherever |w| ≤ limit, and leaves every other tensor shared."""

    def change(tensor: Tensor) -> Tensor:
        if id(tensor) not in weights or limit < 0:
            return tensor
        small = tensor.detach().abs().float() <= limit
        return nn.Parameter(tensor.detach().masked_fill(small, 0), requires_grad=False)

    return change


def _panels(
    subject: Subject, values: dict[str, NDArray[Any]], first: int, count: int, layers: int
) -> tuple[TextPanel, ChartPanel, TablePanel]:
    label, top = subject.label(first), values["top"]
    percents = [f"{100 * share:.4g}" for share in values["shares"]]
    other = np.flatnonzero(top != first)
    if len(other):
        first_other = int(other[0])
        held = f"up to {percents[first_other - 1]} %" if first_other > 1 else "at no step"
        end = (
            f"The prediction {label} holds {held}; at {percents[first_other]} % it becomes "
            f"{subject.label(int(top[first_other]))}."
        )
    else:
        end = f"The prediction stays {label} all the way to {percents[-1]} %."
    says = TextPanel(
        f"{subject.model.title} has {count:,} weights in {layers:,} conv "
        f"layer{'s' if layers > 1 else ''}; the smallest go "
        f"first. {end}",
        "note" if len(other) else "plain",
    )
    chart = ChartPanel(
        "Probability while weights are removed",
        tuple(percents),
        {
            "the likeliest class": 100.0 * values["top_probability"].astype(np.float64),
            label: 100.0 * values["probability"].astype(np.float64),
        },
        kind="lines",
        unit="probability (%)",
        caption="Along the bottom: the share of conv weights set to 0, in percent.",
    )
    rows = tuple(
        (
            percents[index],
            round(count * (1 - float(values["removed"][index]))),
            subject.label(int(top[index])),
            number(100 * float(values["top_probability"][index])),
            number(float(values["logit"][index])),
            "yes" if top[index] == first else "no",
        )
        for index in range(len(top))
    )
    head = tuple(name.format(label) for name in _HEAD)
    return says, chart, TablePanel("At every share", head, rows)


LENS = Lens(
    slug="prune-weights",
    title="Prune weights",
    question="How few weights will do?",
    sentence="How many of the smallest conv weights can be set to 0 before the prediction changes.",
    run=run,
    parameters=(
        RealNumber(name="most", label="Largest share to remove (%)", low=1, high=100, default=95),
        WholeNumber(name="step", label="Step (%)", low=1, high=50, default=10),
    ),
)
