"""Keep of a layer what ``any_cell.js`` computes the sum of any of its cells from."""

from typing import Any

from hookviz.explaining.layers.layer_call import FollowingOp, LayerCall
from hookviz.explorer.glossary import explained
from hookviz.explorer.origin import (
    AGREES,
    BIAS,
    DIFFERS,
    FOLLOWED,
    NORMALISED,
    ROWS,
    SUM,
)
from hookviz.language.saying import localised, say
from hookviz.standalone.packing import Halves, halves, whole_floats

Parts = list[tuple[str, str]]


def call_facts(call: LayerCall, upstream: str | None) -> dict[str, Any]:
    """Return what is known of a layer's call beside its numbers, as sentences have it.

    Args:
        call: of a convolution.
        upstream: the layer whose channels the inputs are, if there is one.
    """
    return {
        "kernel": list(call.kernel.shape),
        "bias": None if call.bias is None else call.bias.tolist(),
        "input": list(call.padded.shape),
        "corner": list(call.corner),
        "stride": list(call.stride),
        "dilation": list(call.dilation),
        "groups": call.groups,
        "output": list(call.output.shape),
        "rounding": call.rounding,
        "upstream": upstream,
        "rows": ROWS,
        "sum": _sum(has_bias=call.bias is not None),
        "steps": [
            {"says": _step(step), "epsilon": step.epsilon, "norm": _norm(step)}
            for step in call.steps
        ],
    }


def call_numbers(call: LayerCall) -> dict[str, str]:
    """Return the numbers of a call: its padded input and its weights, exactly as they are."""
    return {
        "input": whole_floats(call.padded.numpy()),
        "weights": whole_floats(call.kernel.numpy()),
    }


def followed(call: LayerCall) -> list[Halves]:
    """Return what the steps after a call put out."""
    return [halves(step.values.numpy()) for step in call.steps]


def _sum(*, has_bias: bool) -> dict[str, Parts]:
    """Return the sentence about the sum, where the network computed the same and where not."""
    bias = say(BIAS) if has_bias else ""
    sentence = say(SUM).replace("{bias_term}", bias)
    return {
        name: explained(sentence.replace("{verdict}", say(verdict)))
        for name, verdict in (("agrees", AGREES), ("differs", DIFFERS))
    }


def _step(step: FollowingOp) -> Parts:
    title = f"{step.kind} {step.layer}".strip()
    sentence = say(FOLLOWED if step.norm is None else NORMALISED)
    epsilon = localised(f"{step.epsilon:g}")
    return explained(sentence.replace("{title}", title).replace("{epsilon:g}", epsilon))


def _norm(step: FollowingOp) -> list[list[float]] | None:
    """Return mean, variance, scale and shift of each channel."""
    return None if step.norm is None else step.norm.tolist()
