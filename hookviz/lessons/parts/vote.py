"""Follow the last maps to a class: a number for each channel, their weighted sum, the softmax."""

from collections.abc import Mapping

import numpy as np

from hookviz.capturing import engine
from hookviz.errors import ModelError
from hookviz.explaining.class_vote import ClassVote, class_vote
from hookviz.language.saying import say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scores import Scores

LIKELIEST = "likeliest"
"""What a lesson writes for the class with the highest score."""
PICKED = "picked"
"""Among the options the number of the class that a learner picked; a lesson's file has none."""

_OF_VOTE = (
    *("layer", "channels", "bias", "top_channel", "top_mean", "top_weight", "top_part"),
    *("for", "against"),
)


def scores_of(scene: LessonScene) -> Scores:
    """Return the class scores of the scene's input.

    Raises:
        ModelError: the network puts out none.
    """
    first = [layer.name for layer in scene.trace.layers[:1]]
    capture = engine.capture(scene.model, scene.model_input, first, cache=scene.cache)
    if capture.logits is None:
        raise ModelError(
            say("{model} puts out no class scores, which this part shows.", model=scene.model.title)
        )
    return Scores(capture.logits.double().numpy(), scene.model.categories)


def vote_of(scene: LessonScene) -> ClassVote | None:
    """Return how the last channels vote; None where the network ends in another way."""
    return class_vote(scene.model, scene.model_input, cache=scene.cache)


def class_of(scores: Scores, name: str) -> int:
    """Return the class of that name; the likeliest where the network has none of that name."""
    known = name != LIKELIEST and name in scores.names[: len(scores.scores)]
    return scores.names.index(name) if known else scores.best


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    scores = scores_of(scene)
    values, chances = scores.scores, scores.chances
    target, second = class_of(scores, options["target"]), scores.first(2)[-1]
    target = min(int(options.get(PICKED, target)), len(values) - 1)
    lead = float(values[scores.best] - values[second])
    facts: dict[str, Fact] = {
        "classes": len(values),
        "class": scores.name(target),
        "score": float(values[target]),
        "chance": float(chances[target]),
        "second": scores.name(second),
        "second_score": float(values[second]),
        "second_chance": float(chances[second]),
        "lead": lead,
        "times": float(np.exp(lead)),
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


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    vote = vote_of(scene)
    if vote is None:
        return {}
    target = class_of(scores_of(scene), options["target"])
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
