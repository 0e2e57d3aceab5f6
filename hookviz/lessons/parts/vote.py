"""Follow the last maps to a class: a number for each channel, their weighted sum, the softmax."""

import re
from collections.abc import Mapping

from hookviz.capturing import engine
from hookviz.errors import ModelError
from hookviz.explaining.scores.class_vote import ClassVote, class_vote
from hookviz.language.saying import say
from hookviz.lessons.chances import chance, ratio
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import Map, maps_of, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scores import Scores, named_scores
from hookviz.wording import number

LIKELIEST = "likeliest"
"""What a lesson writes for the class with the highest score."""
PICKED = "picked"
"""Among the options the number of the class that a learner picked; a lesson's file has none."""
CHANNEL = "channel"
"""Among the options the channel that a learner picked; a lesson's file has none."""
DRAGGED = "dragged"
"""Among the options the scores that a learner dragged, as `moved_scores` reads them."""

MOST_CLASSES = 6
"""Classes whose scores are shown."""
FURTHEST = 1000.0
"""What a score can be dragged to, at most."""

SHOWN = ("means", "vote", "scores", "softmax")
"""What is shown: the last maps with their means, their vote, the classes' scores, the softmax."""

_OF_VOTE = (
    *("layer", "channels", "bias", "top_channel", "top_mean", "top_weight", "top_part"),
    *("for", "against"),
)
_MOVE = re.compile(r"([0-9]{1,6}):(-?[0-9]{1,4}(?:\.[0-9]{1,2})?)")


def scores_of(scene: LessonScene) -> Scores:
    """Return the class scores of the scene's input.

    Raises:
        ModelError: the network puts out none.
    """
    first = [layer.name for layer in scene.trace.layers[:1]]
    capture = engine.capture(scene.model, scene.model_input, first, cache=scene.cache)
    if capture.answer is None:
        raise ModelError(capture.unanswered)
    return named_scores(scene.model, capture.answer.scores, capture.answer.reading)


def vote_of(scene: LessonScene) -> ClassVote | None:
    """Return how the last channels vote; None where the network ends in another way."""
    return class_vote(scene.model, scene.model_input, cache=scene.cache)


def class_of(scores: Scores, name: str) -> int:
    """Return the class of that name; the likeliest where the network has none of that name."""
    known = name != LIKELIEST and name in scores.names[: len(scores.scores)]
    return scores.names.index(name) if known else scores.best


def last_maps(scene: LessonScene) -> tuple[str, Map]:
    """Return the last maps ``(C, H, W)`` and their layer: those whose means vote, where they do."""
    vote = vote_of(scene)
    if vote is not None:
        return vote.layer, vote.maps.numpy()
    layer = layer_of(scene, "last").name
    return layer, maps_of(scene, layer)


def moved_scores(text: str, classes: int) -> dict[int, float]:
    """Read the scores that were dragged, such as ``"3:-1.25,7:4.5"``, by the class's number.

    What is no such pair, or of no class, is left out: it comes from a link.
    """
    moves = (_MOVE.fullmatch(pair) for pair in text.split(","))
    found = {int(move[1]): float(move[2]) for move in moves if move}
    return {
        target: max(-FURTHEST, min(FURTHEST, score))
        for target, score in found.items()
        if target < classes
    }


def compared(scores: Scores) -> str:
    """Tell the probabilities of the two likeliest classes, and their ratio if what is shown has it.

    That is a sentence, in the language that is spoken.
    """
    first, second = scores.first(2)[0], scores.first(2)[-1]
    larger, smaller = float(scores.chances[first]), float(scores.chances[second])
    told = {
        "class_name": scores.name(first),
        "larger": chance(larger),
        "other": scores.name(second),
        "smaller": chance(smaller),
    }
    times = ratio(larger, smaller)
    if not times:
        return say(
            "The probability of {class_name} is {larger}, that of {other} {smaller}.", **told
        )
    return say(
        "The probability of {class_name} is {larger}, that of {other} {smaller}: about {factor} "
        "times less.",
        factor=times,
        **told,
    )


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    own = scores_of(scene)
    scores = own.moved(moved_scores(options.get(DRAGGED, ""), len(own.scores)))
    values, chances = scores.scores, scores.chances
    target, second = class_of(own, options["target"]), scores.first(2)[-1]
    target = min(int(options.get(PICKED, target)), len(values) - 1)
    lead = float(values[scores.best] - values[second])
    facts: dict[str, Fact] = {
        "classes": len(values),
        "class": scores.name(target),
        "likeliest": scores.name(scores.best),
        "likeliest_chance": chance(float(chances[scores.best])),
        "score": float(values[target]),
        "chance": float(chances[target]),
        "second": scores.name(second),
        "second_score": float(values[second]),
        "second_chance": float(chances[second]),
        "lead": lead,
        "compared": compared(scores),
    }
    facts |= _of_channel(scene, options)
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
            "top_mean": number(float(vote.means[top])),
            "top_weight": number(float(vote.weights[target, top])),
            "top_part": number(float(parts[top])),
            "for": int((parts > 0).sum()),
            "against": int((parts < 0).sum()),
        }
    return facts


def _of_channel(scene: LessonScene, options: Options) -> dict[str, Fact]:
    """Return the facts of one of the last maps: of the strongest before any was picked."""
    layer, maps = last_maps(scene)
    channel = min(int(options.get(CHANNEL, strongest_first(maps, 1)[0])), len(maps) - 1)
    values = maps[channel]
    return {
        "last_layer": layer,
        "last_channels": len(maps),
        "cells": values.size,
        "map_channel": channel,
        "map_mean": number(float(values.mean())),
        "map_highest": number(float(values.max())),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    vote = vote_of(scene)
    if vote is None:
        return {}
    target = class_of(scores_of(scene), options["target"])
    return {"layer": vote.layer, "channel": str(int(vote.contributions(target).argmax()))}


PART = Part(
    name="vote",
    sentence="The last maps and the mean of each; what each adds to the score of a class, its mean "
    "times its weight; or the scores of the classes, which can be dragged, and what the softmax "
    "makes of them.",
    options=(
        Option("target", LIKELIEST, "The class at first, by its name."),
        Option(
            "shown",
            "vote",
            "means for the maps, vote for the channels, scores or softmax for the classes.",
            choice(SHOWN),
        ),
    ),
    facts=_facts,
    link=_link,
)
