"""List the parameters of the page's link, and say of each who else gets it.

The parameters of lenses, ``SLUG-NAME``, stand beside them: everybody gets those.
"""

from typing import NamedTuple

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
    LinkParameter("a", is_held=True),
    LinkParameter("after"),
    LinkParameter("answers"),
    LinkParameter("cell", is_held=True),
    LinkParameter("channel", is_held=True),
    LinkParameter("colours", "automatic"),
    LinkParameter("compare"),
    LinkParameter("family", "All families"),
    LinkParameter("image", "Samples", is_followed=False),
    LinkParameter("lang", is_held=True, is_followed=False),
    LinkParameter("layer", is_held=True),
    LinkParameter("layers", "conv", is_held=True),
    LinkParameter("lens", "", is_held=True),
    LinkParameter("lesson", is_held=True),
    LinkParameter("made", is_held=True),
    LinkParameter("model"),
    LinkParameter("origin"),
    LinkParameter("output"),
    LinkParameter("patches"),
    LinkParameter("present", is_followed=False, is_for_others=False),
    LinkParameter("sample", is_held=True),
    LinkParameter("scale", "automatic"),
    LinkParameter("silenced", is_held=True),
    LinkParameter("size"),
    LinkParameter("sort", "index"),
    LinkParameter("step", is_held=True),
    LinkParameter("top", "all"),
    LinkParameter("upload", is_held=True, is_followed=False, is_for_others=False),
    LinkParameter("weights", "pretrained"),
    LinkParameter("whole"),
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
