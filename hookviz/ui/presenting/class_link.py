"""Make the link to the view on the screen, short enough to be typed, and its QR code."""

from typing import NamedTuple

from hookviz.serving.short_links import short_links
from hookviz.ui.presenting.known_link import for_the_class
from hookviz.ui.qr_code import qr_code
from hookviz.ui.serving import go_route

SHORT = 60
"""Letters of a link that is short enough to be typed from the wall without a QR code."""


class ClassLink(NamedTuple):
    """Link with its QR code.

    Attributes:
        link: a whole URL.
        is_code: whether it has a short code, which holds for a while.
        picture: the QR code, as a URL of an SVG picture.
    """

    link: str
    is_code: bool
    picture: str


def link_for(base: str, query: dict[str, str], owner: str) -> ClassLink:
    """Return the link to what a query string says, under the page's own address `base`."""
    said = for_the_class(query)
    base = base.partition("?")[0].partition("#")[0]
    link = f"{base}?{said}" if said else base
    is_code = len(link) > SHORT
    if is_code:
        code = short_links().code_for(said, owner)
        link = f"{base.rstrip('/')}{go_route.PATH}/{code}"
    return ClassLink(link, is_code, qr_code(link))


def link_into_class(link: str) -> ClassLink:
    """Return the link by which pupils follow, as it is."""
    return ClassLink(link, False, qr_code(link))
