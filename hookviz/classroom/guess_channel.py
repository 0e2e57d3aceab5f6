"""Make riddles of an atlas: a channel's strongest images, and names of which one is right.

The right name is the class of most of those images. The others are classes to which the channel
answers least, so that nobody can quarrel about them.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
from PIL import Image

from hookviz.atlas.atlas import Atlas, TopActivation
from hookviz.atlas.files import PHOTOGRAPH
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.engine import capture
from hookviz.classroom.question import Riddle, check_answers, one_line
from hookviz.drawing import overlay
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.errors import ClassroomError
from hookviz.explorer.rendering import look_of
from hookviz.explorer.subject import Colours
from hookviz.explorer.view import View
from hookviz.images import reading
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.types import InputImage, Model, ModelInput, Pixels

NAMES = 4
"""To choose one of."""
_SHARES = (0.99, 0.6, 0.45)  # of the strongest images that are of one class: all, most, many
_PATCH, _MAP = 160, 480  # pixels of the pictures' longer side
_MOST_PATCHES = 9


@dataclass(frozen=True, slots=True)
class Found:
    """Channel that can be guessed.

    Attributes:
        layer: its written address.
        channel: its number.
        category: the class of most of its strongest images; empty where the atlas has no classes.
        share: of those images that are of it.
        strongest: the images.
    """

    layer: str
    channel: int
    category: str
    share: float
    strongest: tuple[TopActivation, ...] = field(repr=False)

    @property
    def key(self) -> tuple[str, int]:
        """Which channel it is."""
        return self.layer, self.channel


def find_channel(
    atlas: Atlas, layer: str, rng: Random, known: Iterable[tuple[str, int]] = ()
) -> Found:
    """Find a channel whose strongest images are of one class, as far as there is one.

    Args:
        atlas: where to look.
        layer: of which layer; empty for any.
        rng: chooses among those there are.
        known: channels that were guessed already.

    Raises:
        ClassroomError: there is none left.
    """
    gone = set(known)
    classes = list(atlas.classes)
    rng.shuffle(classes)
    classes.sort(key=lambda name: name == PHOTOGRAPH)
    count = sum(atlas.layers.values())
    answering = {name: atlas.channels_of_class(name, count) for name in classes}
    for least in _SHARES:
        for name, answers in answering.items():
            of_it = [
                (each.layer, each.channel, each.share)
                for each in answers
                if each.share >= least
                and layer in ("", each.layer)
                and (each.layer, each.channel) not in gone
            ]
            if of_it:
                where, channel, share = rng.choice(of_it)
                best = atlas.top_activations(where, channel)[:_MOST_PATCHES]
                return Found(where, channel, name, share, best)
    raise ClassroomError(
        say("All channels that answer to one class were guessed. Take another layer.")
        if gone
        else say("No channel there answers to one class more than to others. Take another layer.")
    )


def four_names(atlas: Atlas, found: Found, rng: Random) -> tuple[tuple[str, ...], int]:
    """Return the class of what excites a channel among three that do not; and where it stands.

    Raises:
        ClassroomError: the atlas has too few classes.
    """
    seen = {each.image.category for each in found.strongest}
    answers = atlas.statistics(found.layer).class_maximum[:, found.channel]
    order = sorted(zip(answers.tolist(), atlas.classes, strict=True))
    least = [name for _, name in order if name not in seen]
    if len(least) < NAMES - 1:
        raise ClassroomError(
            say("The atlas has too few classes to make four names of. Type the names yourself.")
        )
    others = rng.sample(least[: max(NAMES - 1, len(least) // 3)], NAMES - 1)
    return _shuffled([found.category, *others], rng)


def typed_names(lines: Iterable[str], rng: Random) -> tuple[tuple[str, ...], int]:
    """Return names that a teacher typed, the right one first, in any order, and where it stands.

    Raises:
        ClassroomError: there are not four, or they can't be answers.
    """
    names = [name for name in map(one_line, lines) if name]
    if len(names) != NAMES:
        raise ClassroomError(
            say(
                "A riddle has {number} names, one a line; this one has {count}.",
                number=NAMES,
                count=len(names),
            )
        )
    check_answers(names)
    return _shuffled(names, rng)


def _shuffled(names: Sequence[str], rng: Random) -> tuple[tuple[str, ...], int]:
    """Return names in any order, and where the first of them stands."""
    order = rng.sample(range(len(names)), len(names))
    return tuple(names[at] for at in order), order.index(0)


def make_riddle(
    found: Found,
    names: tuple[tuple[str, ...], int] | None,
    model: Model,
    atlas: Atlas,
    *,
    today: tuple[InputImage, ModelInput],
    colours: Colours,
    cache: ByteCache | None = None,
) -> Riddle:
    """Make a riddle of a channel, with its map on today's image.

    Args:
        found: the channel.
        names: to choose one of, and the position of the right one; None for the class's own words.
        model: the network.
        atlas: where the channel was found.
        today: the image, and what the network is given of it.
        colours: of its map.
        cache: keeps the map.
    """
    activation = capture(model, today[1], found.layer, cache=cache)[found.layer]
    grid = look_of(View(), colours, activation.values.shape[0]).draw(activation, None)
    drawn = grid.channel_pixels(found.channel)
    ends = COLORMAPS[colours.diverging]
    return Riddle(
        patches=tuple(filter(None, (_picture(each, atlas) for each in found.strongest))),
        names=names[0] if names else (),
        right=names[1] if names else None,
        where={
            "model": model.title,
            "layer": found.layer,
            "channel": found.channel,
            "signed": bool((grid.stats.minimum < 0).any()),
            "above": ends.high,
            "below": ends.low,
        },
        map=_jpeg(_over_grey(today, drawn), _MAP),
    )


def _picture(strong: TopActivation, atlas: Atlas) -> str:
    """Return what the strongest cell sees, as sharp as the image is where that is there."""
    file = atlas.picture(strong.image)
    if file is not None and strong.box is not None:
        top, left, bottom, right = strong.box
        return _jpeg(reading.read(file).pixels[top:bottom, left:right], _PATCH)
    return "" if strong.patch is None else _jpeg(strong.patch, _PATCH)


def _over_grey(today: tuple[InputImage | None, ModelInput], drawn: Pixels) -> Pixels:
    """Lay a drawn map over the image in grey, so that no colour is seen but the map's."""
    image, model_input = today
    seen = replace(model_input, picture=_grey(overlay.input_picture(model_input)))
    grey = None if image is None else replace(image, pixels=_grey(image.pixels))
    return overlay.over_image(seen, grey, drawn)


def _grey(pixels: Pixels) -> Pixels:
    return np.asarray(Image.fromarray(pixels).convert("L").convert("RGB"))


def _jpeg(pixels: Pixels, most: int) -> str:
    picture = Image.fromarray(pixels)
    picture.thumbnail((most, most))
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=88)
    return data_url(data.getvalue(), "jpeg")
