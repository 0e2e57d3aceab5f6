"""Show an image as numbers alone, with names to guess among, and a button that uncovers more."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say
from hookviz.lessons.parts.riddle import COLOURS, FINER, GREY, GREYS, LAST, NUMBERS
from hookviz.types import Pixels
from hookviz.ui.components.files import each_once, show


@dataclass(frozen=True, slots=True)
class Guess:
    """A name that can be guessed.

    Attributes:
        name: of the image, for the program.
        title: of the image, for people.
        tried: whether it was guessed.
        right: whether it is the image that is shown.
    """

    name: str
    title: str
    tried: bool
    right: bool


@dataclass(frozen=True, eq=False, slots=True)
class RiddleView:
    """What is seen of a riddle.

    Attributes:
        stage: how far it is uncovered.
        levels: the numbers that are seen, 0 to 255; empty where all pixels are.
        picture: the image as it is to be seen, RGB uint8 ``(H, W, 3)``; None before that.
        guesses: names to guess among; none for an image without names.
        says: what came of the guesses.
        has_another: whether another riddle can be asked for.
    """

    stage: int
    levels: Sequence[Sequence[int]]
    picture: Pixels | None
    guesses: Sequence[Guess]
    says: str
    has_another: bool


def show_riddle(
    view: RiddleView,
    on_uncover: Callable[[int], None],
    on_guess: Callable[[str], None],
    on_another: Callable[[], None],
    *,
    key: str,
) -> None:
    """Show the riddle. The image's own pixels leave the server only where they are to be seen.

    Each guess counts, however quickly the next one follows.

    Args:
        view: what is seen.
        on_uncover: gets the stage that is asked for.
        on_guess: gets the name that is guessed.
        on_another: is called where another riddle is asked for.
        key: of the component.
    """
    names = {each.name for each in view.guesses if not each.tried}

    def did(sent: object) -> None:
        match sent:
            case {"stage": int(stage)} if NUMBERS <= stage <= LAST:
                on_uncover(stage)
            case {"guess": str(name)} if name in names and view.stage < LAST:
                on_guess(name)
            case {"another": True} if view.has_another:
                on_another()

    is_over = view.stage == LAST
    data = {
        "stage": view.stage,
        "levels": view.levels,
        "guesses": [
            # which one is right stays here until it is found
            asdict(each) if each.tried or is_over else {**asdict(each), "right": False}
            for each in view.guesses
        ],
        "says": view.says,
        "another": say("Another riddle") if view.has_another and is_over else "",
        "on": {
            NUMBERS: say("Paint each number as a grey"),
            GREYS: say("Four times as many numbers"),
            FINER: say("A number for each pixel"),
            GREY: say("Three numbers for each pixel: colours"),
        }.get(view.stage, ""),
        "again": say("Cover it again") if view.stage > NUMBERS else "",
        "words": {
            "label": say("An image as numbers"),
            "guesses": say("What is it?"),
            "numbers": say(
                "{rows} rows of {columns} numbers, from {low} to {high}.",
                rows=len(view.levels),
                columns=len(view.levels[0]) if view.levels else 0,
                low=min(map(min, view.levels), default=0),
                high=max(map(max, view.levels), default=0),
            ),
            "picture": say("The image, whole.") if view.stage == COLOURS else say("It in grey."),
        },
    }
    png = b"" if view.picture is None else encode_png(view.picture, compress_level=1)
    show("riddle", key, data, png, did=each_once(key, did))
