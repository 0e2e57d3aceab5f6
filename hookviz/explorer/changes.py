"""Answer how a pair of one shape differs: what it has in common, which channels changed most."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookviz.drawing.pair import why_unlike
from hookviz.explorer.emphasis import emphasised
from hookviz.explorer.layers import maps, resolve
from hookviz.explorer.pair import of_b_alone, pinned_pair
from hookviz.explorer.question import Answer, NotThereError, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.wording import number

_MOST = 8  # channels in the list of those that changed most


def answer_changes(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return what A and B have in common as a whole, and the channels that changed most.

    Before there is a B, that is what to do next.

    Raises:
        NotThereError: nothing is pinned as A, or A has another shape.
        HookVizError: A can't be had, or the pass can't be run.
    """
    looked = resolve(subject, view)
    pair = pinned_pair(subject, str(looked.step), maps(subject, looked), looked.frame)
    if pair is None:
        raise NotThereError(
            say("Nothing is pinned as A: pin what is on the screen with Compare first.")
        )
    if not pair.alike:
        raise NotThereError(why_unlike(pair.a.shape, pair.b.shape))
    if not of_b_alone(subject, str(looked.step)) and np.array_equal(pair.a, pair.b):
        says = say(
            "**There is no B yet.** Choose another image or model at the side, or another layer: "
            "then the channels that changed most stand here."
        )
        return Answer({"says": emphasised(says), "heads": [], "rows": [], "caption": ""})
    common = pair.channels
    known = common.correlation[np.isfinite(common.correlation)]
    says = say("**Click a tile** for its map in A and in B. Hold **F** to flip between the two. ")
    if known.size:
        mean = say("the channels' correlation is {mean} on average", mean=number(known.mean()))
        says += say("Cell against cell {correlation}.", correlation=mean)
    numbers = common.mean_absolute_difference, common.correlation, common.cosine
    return Answer(
        {
            "says": emphasised(says.rstrip()),
            "heads": ["channel", say("mean |B − A|"), "correlation", "cosine"],
            "rows": [
                [channel, *(number(float(each[channel])) for each in numbers)]
                for channel in common.most_changed[:_MOST].tolist()
            ],
            "caption": say(
                "The channels that changed most; sort: change brings them to the front."
            ),
        }
    )
