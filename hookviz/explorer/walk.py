"""Answer how a channel comes from one of its inputs: the kernel's walk, from a cell on."""

from collections.abc import Mapping
from typing import Any

from hookviz.explaining.layers import ranking
from hookviz.explorer.asked import is_below, written
from hookviz.explorer.kernel_walk import kernel_walk
from hookviz.explorer.layers import resolve
from hookviz.explorer.origin import asked_place, layer_call
from hookviz.explorer.question import Answer, NotThereError, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say

_MOST_CHOICES = 64


def answer_walk(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer how a channel comes from its `input`; without one, from that which adds most.

    Its number is `chosen`, for `input` has the values of its map.

    Raises:
        NotThereError: there is no such channel, cell or input.
        HookVizError: the layer is no plain convolution, or can't be recorded.
    """
    looked = resolve(subject, view)
    place = asked_place(subject, looked, facts)
    call = layer_call(subject, looked)
    inputs = call.inputs_of(place.channel)
    strongest = ranking.strongest_by_contribution(call, place.channel)
    most = strongest[0][0]
    given = facts.get("input")
    if given is None:
        given = most
    if not is_below(given, inputs.stop, inputs.start):
        raise NotThereError(
            say(
                "Channel {channel} of {layer} has no input {index}: its inputs are {first} to "
                "{last}.",
                channel=place.channel,
                layer=call.layer,
                index=written(given),
                first=inputs.start,
                last=inputs.stop - 1,
            )
        )
    offered = [index for index, _ in strongest[:_MOST_CHOICES]]
    if given not in offered:  # of a link to a weak one
        offered.append(given)
    return Answer(
        {
            **kernel_walk(call, place.channel, given, place.on(call)),
            "inputs": [{"value": index, "says": _says(index, most)} for index in offered],
            "chosen": given,
            "colours": subject.colours.diverging,
        }
    )


def _says(index: int, most: int) -> str:
    if index == most:
        return say("input {name}, which adds most", name=index)
    return say("input {name}", name=index)
