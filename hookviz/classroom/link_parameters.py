"""List the parameters of the page's link, and say of each who else gets it.

What is chosen of the explorer and its subject is declared in `hookviz.explorer.view`; beside it
stands what the page around it chooses. The parameters of lenses, ``SLUG-NAME``, stand beside them:
everybody gets those.
"""

from typing import NamedTuple

from hookviz.explorer.view import choices
from hookviz.language.saying import mark


class LinkParameter(NamedTuple):
    """Parameter of the page's link.

    Attributes:
        name: as it stands in the link.
        default: what the page shows without it; None where that depends on something else.
        is_held: whether code alone writes it, and no widget binds it.
        is_followed: whether a class follows its teacher's; the others are each person's own.
        is_in_slides: whether a kept slide or a link may have it.
        is_for_others: whether a link for other people may have it.
    """

    name: str
    default: str | None = None
    is_held: bool = False
    is_followed: bool = True
    is_in_slides: bool = True
    is_for_others: bool = True


PARAMETERS = (
    *(
        LinkParameter(
            each.word,
            each.default,
            is_held=True,
            is_followed=each.is_followed,
            is_for_others=each.is_for_others,
        )
        for each in choices().values()
    ),
    LinkParameter("lang", is_held=True, is_followed=False),
    LinkParameter("lens", "", is_held=True),
    LinkParameter("lesson", is_held=True),
    LinkParameter("like", is_held=True),
    LinkParameter("means", is_held=True),
    LinkParameter("mirror", is_held=True, is_followed=False),
    LinkParameter("moved", is_held=True),
    LinkParameter("present", is_followed=False, is_for_others=False),
    LinkParameter("region", is_held=True),
    LinkParameter("step", is_held=True),
    LinkParameter("target", is_held=True),
    *(
        LinkParameter(
            part, is_held=True, is_followed=False, is_in_slides=False, is_for_others=False
        )
        for part in ("class", "follow")
    ),
)

OWN_FILES = (mark("Upload"), mark("Camera"))
"""Values of ``image`` for a picture of one's own, which no link carries.

*Live* is not among them: a link to it opens the camera of whoever follows the link.
"""

LIVE = mark("Live")
OWN_IMAGES = (*OWN_FILES, LIVE)
"""Values of ``image`` for what nobody else sees: a class keeps its sample meanwhile."""
