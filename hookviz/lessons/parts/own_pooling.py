"""Show the poolings that the network itself has, each with a map before it and behind it."""

from collections.abc import Mapping

from hookviz.explaining.layers.poolings import Pooling, poolings
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.wording import times

PICKED = "picked"
"""Among the options the place of the pooling that a learner picked; a lesson's file has none."""

KINDS = {"max": mark("Largest"), "average": mark("Average")}
"""The kinds of pooling, as people read them."""


def own_poolings(scene: LessonScene) -> tuple[Pooling, ...]:
    """Return the network's poolings, in order of execution."""
    found: tuple[Pooling, ...] = scene.cached(
        ("poolings",),
        lambda: poolings(scene.model, scene.model_input),
        lambda each: 1000 + sum(one.before.nbytes + one.after.nbytes for one in each),
    )
    return found


def picked_pooling(found: tuple[Pooling, ...], text: str) -> int:
    """Return the place of the pooling that was picked, the first without one."""
    return min(int(text), len(found) - 1) if text.isdecimal() else 0


def described(pooling: Pooling) -> str:
    """Tell a pooling's windows and steps in a sentence."""
    before, after = times(pooling.before.shape), times(pooling.after.shape)
    kind = say(KINDS[pooling.kind])
    if pooling.window is None or pooling.stride is None:
        return say(
            "{kind} of each window, as large as the map needs: {before} cells become {after}.",
            kind=kind,
            before=before,
            after=after,
        )
    return say(
        "{kind} of each {window} cells, with a step of {stride}: {before} cells become {after}.",
        kind=kind,
        window=times(pooling.window),
        stride=times(pooling.stride[:1] if len(set(pooling.stride)) == 1 else pooling.stride),
        before=before,
        after=after,
    )


def told(scene: LessonScene, found: tuple[Pooling, ...], at: int) -> str:
    """Tell which pooling is shown, or that the network has none, in a sentence or two."""
    if not found:
        return say(
            "{model} has no pooling of maps. A convolution that takes larger steps makes maps "
            "smaller, too.",
            model=scene.model.title,
        )
    where = say(
        "{model} pools {count} times; this is number {number}.",
        model=scene.model.title,
        count=len(found),
        number=at + 1,
    )
    return say("{sentence} {another}", sentence=where, another=described(found[at]))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    found = own_poolings(scene)
    at = picked_pooling(found, options.get(PICKED, ""))
    return {"poolings": len(found), "told": told(scene, found, at)}


def _link(scene: LessonScene, _options: Options) -> Mapping[str, str]:
    found = own_poolings(scene)
    return {"layer": found[0].layer} if found and found[0].layer else {}


PART = Part(
    name="own-pooling",
    sentence="The poolings that the network itself has, with their windows and steps, each with a "
    "channel before it and behind it; a click on a cell shows the numbers that it came from.",
    facts=_facts,
    link=_link,
)
