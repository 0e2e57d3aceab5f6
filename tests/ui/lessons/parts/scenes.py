"""Scenes that parts of lessons look at, and options with their defaults."""

from functools import cache

import hookviz
from hookviz.lessons.part import LessonScene, Options, Part
from tests.lessons.conftest import scene_of


@cache
def star() -> LessonScene:
    """ShapesNet and the drawn star."""
    return scene_of(hookviz.load_model("shapesnet"), "star")


@cache
def cat() -> LessonScene:
    """SqueezeNet, whose head is a convolution, and the photograph of a cat."""
    return scene_of(hookviz.load_model("squeezenet"), "cat")


@cache
def photograph() -> LessonScene:
    """ShapesNet and the photograph of a cat."""
    return scene_of(hookviz.load_model("shapesnet"))


@cache
def untrained() -> LessonScene:
    """ShapesNet with random weights and the drawn star."""
    return scene_of(hookviz.load_model("shapesnet", "random"), "star")


def with_defaults(part: Part, **options: str) -> Options:
    """What a lesson's file sets, and the defaults of the rest."""
    known = {option.name: option.default or "" for option in part.options}
    assert options.keys() <= known.keys()
    return known | options
