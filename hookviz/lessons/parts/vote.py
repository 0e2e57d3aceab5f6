"""From the last maps to a class: one number a channel, their weighted sum, and the softmax."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.errors import ModelError
from hookviz.explaining.class_vote import ClassVote, class_vote
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.lessons.checks import choice
from hookviz.lessons.part import Fact, Option, Options, Part, Scene

LIKELIEST = "likeliest"
"""What a lesson writes for the class with the highest score."""

_OF_VOTE = (
    *("layer", "channels", "bias", "top_channel", "top_mean", "top_weight", "top_part"),
    *("for", "against"),
)


def scores_of(scene: Scene) -> NDArray[np.float32]:
    """The class scores before the softmax, ``(classes,)``.

    Raises:
        ModelError: the network puts out none.
    """
    first = [layer.name for layer in scene.trace.layers[:1]]
    capture = engine.capture(scene.model, scene.model_input, first, cache=scene.cache)
    if capture.logits is None:
        raise ModelError(
            say("{model} puts out no class scores, which this part shows.", model=scene.model.title)
        )
    return capture.logits.numpy()


def chances(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """The softmax of scores: ``exp(score)`` of each, divided by the sum of them all."""
    grown = np.exp(scores.astype(np.float64) - scores.max())
    shares: NDArray[np.float64] = grown / grown.sum()
    return shares


def vote_of(scene: Scene) -> ClassVote | None:
    """How the last channels vote; None where the network ends in another way."""
    return class_vote(scene.model, scene.model_input, cache=scene.cache)


def ranked(scores: NDArray[np.float32]) -> list[int]:
    """The classes by their scores, the highest first."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def class_of(scene: Scene, asked: str, scores: NDArray[np.float32]) -> int:
    """The class of that name; the likeliest where the network has none of that name."""
    names = scene.model.categories
    known = asked != LIKELIEST and asked in names[: len(scores)]
    return names.index(asked) if known else ranked(scores)[0]


def label(scene: Scene, number: int) -> str:
    """What a class is called in the language that is spoken."""
    return class_label(number, scene.model.categories)


def _facts(scene: Scene, options: Options) -> Mapping[str, Fact]:
    scores = scores_of(scene)
    shares, best = chances(scores), ranked(scores)
    target, second = class_of(scene, options["target"], scores), best[min(1, len(best) - 1)]
    facts: dict[str, Fact] = {
        "classes": len(scores),
        "class": label(scene, target),
        "score": float(scores[target]),
        "chance": float(shares[target]),
        "second": label(scene, second),
        "second_score": float(scores[second]),
        "second_chance": float(shares[second]),
        "lead": float(scores[best[0]] - scores[second]),
        "times": float(np.exp(np.float64(scores[best[0]] - scores[second]))),
    }
    vote = vote_of(scene)
    facts |= dict.fromkeys(_OF_VOTE, "–")  # where there is none, as the part says
    if vote is not None:
        parts = vote.contributions(target).numpy()
        top = int(parts.argmax())
        facts |= {
            "layer": vote.layer,
            "channels": len(parts),
            "bias": float(vote.bias[target]),
            "top_channel": top,
            "top_mean": float(vote.means[top]),
            "top_weight": float(vote.weights[target, top]),
            "top_part": float(parts[top]),
            "for": int((parts > 0).sum()),
            "against": int((parts < 0).sum()),
        }
    return facts


def _link(scene: Scene, options: Options) -> Mapping[str, str]:
    vote = vote_of(scene)
    if vote is None:
        return {}
    target = class_of(scene, options["target"], scores_of(scene))
    return {"layer": vote.layer, "channel": str(int(vote.contributions(target).argmax()))}


PART = Part(
    name="vote",
    sentence="What each channel of the last maps adds to the score of a class, its mean times its "
    "weight; or the scores of the classes and what the softmax makes of them.",
    options=(
        Option("target", LIKELIEST, "The class at first, by its name."),
        Option(
            "shown",
            "vote",
            "vote for the channels, softmax for the classes.",
            choice(("vote", "softmax")),
        ),
    ),
    facts=_facts,
    link=_link,
)
