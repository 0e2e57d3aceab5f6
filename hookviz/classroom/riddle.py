"""Hold a channel that a class guesses: what excites it, the names to choose of, where it is."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Riddle:
    """Channel to be guessed.

    Attributes:
        patches: pictures of what excites it most, as URLs that hold their bytes.
        names: to choose one of; none where the class answers in its own words.
        right: the position of the right name; None without names.
        where: the network's ``model``, the ``layer``, the ``channel``, and whether the map has two
            colours, since some of the layer is below zero (``signed``).
        map: the channel's map on an image, as a URL that holds its bytes.
    """

    patches: tuple[str, ...] = field(repr=False)
    names: tuple[str, ...]
    right: int | None
    where: dict[str, str | int]
    map: str = field(repr=False)
