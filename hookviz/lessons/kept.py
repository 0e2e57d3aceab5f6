"""What a live part computed once and needs again when a control moves: kept with the session."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from hookviz.lessons.part import Scene

Made = TypeVar("Made")


def kept(scene: Scene, key: tuple[Hashable, ...], make: Callable[[], Made], nbytes: int) -> Made:
    """What `make` gives for this model and this input, made once while there is room.

    Args:
        scene: with the session's cache, if there is one.
        key: what it is, among all that is made of the same model and input.
        make: makes it.
        nbytes: about how many bytes it takes.
    """
    if scene.cache is None:
        return make()
    whole = ("lesson", scene.model.digest, scene.model_input.digest, *key)
    found: Made | None = scene.cache.get(whole)
    if found is None:
        found = make()
        scene.cache.put(whole, found, nbytes)
    return found
