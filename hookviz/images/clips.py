"""Choose the frames of an animation that a network of video looks at, and decode them."""

from collections.abc import Sequence

from hookviz.images import reading
from hookviz.images.animations import frame_count
from hookviz.settings import settings
from hookviz.types import InputImage


def frames_of(image: InputImage, count: int) -> tuple[InputImage, ...]:
    """Return `count` frames of an animation in even steps, or a still image alone.

    Of few frames some are taken again. Where all together have more pixels than
    ``settings().max_pixels``, the first so many stand for all: what a frame shows can have been
    drawn in any before, so that each is decoded.

    Raises:
        ImageError: a frame can't be decoded.
    """
    if not image.animation:
        return (image,)
    most = settings().max_pixels // (image.height * image.width)
    wanted = chosen(max(1, min(frame_count(image.animation), most)), count)
    decoded = reading.decode_frames(image.animation, image.name, frozenset(wanted))
    return tuple(decoded[number] for number in wanted)


def chosen(total: int, count: int) -> Sequence[int]:
    """Return the numbers of `count` of `total` frames: the middles of `count` equal parts.

    >>> from hookviz.images.clips import chosen
    >>> chosen(8, 4), chosen(2, 4)
    ([1, 3, 5, 7], [0, 0, 1, 1])
    """
    return [(2 * number + 1) * total // (2 * count) for number in range(count)]
