"""Show images as a row of thumbnails, one of them chosen."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from hookviz.drawing.pictures import encode_jpeg, middle_square
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import mount

_SIDE = 96  # pixels, twice what a thumbnail takes on the screen
_QUALITY = 85


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image to choose.

    Attributes:
        name: which one it is, for the program.
        title: which one it is, for people.
        picture: what it looks like, as by `thumbnail`.
    """

    name: str
    title: str
    picture: str


def thumbnail(picture: Pixels) -> str:
    """Return the middle square of a picture, RGB uint8 ``(H, W, 3)``, small, as a data URL."""
    return data_url(encode_jpeg(middle_square(picture, _SIDE), quality=_QUALITY), "jpeg")


def gallery(
    key: str,
    label: str,
    thumbnails: Sequence[Thumbnail],
    chosen: str | None,
    on_pick: Callable[[str], None],
) -> None:
    """Show the thumbnails; `on_pick` gets the name of the one that a person chooses.

    Args:
        key: of the component in Streamlit's state.
        label: what the group is called to those who do not see it.
        thumbnails: in the order in which they stand.
        chosen: the name of the one that is marked, if any.
        on_pick: called before the next run of the page.
    """

    def picked(name: object) -> None:
        if isinstance(name, str) and name in {each.name for each in thumbnails}:
            on_pick(name)

    items = [asdict(each) for each in thumbnails]
    mount("gallery", key, {"label": label, "chosen": chosen, "items": items}, picked=picked)
