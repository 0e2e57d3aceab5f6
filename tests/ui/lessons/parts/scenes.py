"""Scenes that parts of lessons look at, and options with their defaults."""

from functools import cache

import hookviz
from hookviz.lessons.part import LessonScene, Options, Part
from tests.lessons.conftest import scene_of


def with_defaults(part: Part, **options: str) -> Options:
    """What a lesson's file sets, and the defaults of the rest."""
    known = {option.name for option in part.options}
    assert options.keys() <= known
    return {option.name: options.get(option.name, option.default or "") for option in part.options}


@cache
def star() -> LessonScene:
    """ShapesNet and the drawn star."""
    return scene_of(hookviz.load_model("shapesnet"), "star")


@cache
def cat() -> LessonScene:
    """SqueezeNet, whose head is a convolution, and the photograph of a cat."""
    return scene_of(hookviz.load_model("squeezenet"), "cat")
