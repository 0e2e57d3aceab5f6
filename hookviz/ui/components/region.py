"""Show the picture that the network sees, on which a person marks a region."""

from collections.abc import Callable, Sequence

from hookviz.drawing.pictures import encode_png
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import mount

_MOST_LETTERS = 20_000  # that the browser may send; a mask of 32 × 32 cells has far fewer


def mark_region(
    picture: Pixels,
    region: str,
    label: str,
    key: str,
    on_mark: Callable[[str], None],
    *,
    boxes: Sequence[Sequence[float]] = (),
) -> None:
    """Show the picture with the region marked; `on_mark` gets the text of another one.

    Args:
        picture: what is marked, RGB uint8, ``(H, W, 3)``.
        region: the text of what is marked now, as `hookviz.lenses.contract.regions` has it.
        label: what the control is called.
        key: of the component in Streamlit's state.
        on_mark: called before the next run of the page.
        boxes: left, top, right and bottom of each as shares 0…1; a click in one marks it.
    """

    def marked(sent: object) -> None:
        match sent:
            case str(text) if len(text) <= _MOST_LETTERS:
                on_mark(text)

    facts = {
        "image": data_url(encode_png(picture)),
        "size": [picture.shape[1], picture.shape[0]],
        "region": region,
        "label": label,
        "boxes": boxes,
    }
    mount("region", key, facts, marked=marked)
