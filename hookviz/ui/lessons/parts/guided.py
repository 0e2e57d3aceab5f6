"""Draw the image, its gradient and the guided one, with the weights that are chosen."""

import numpy as np
import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.language.saying import say
from hookviz.lessons.maps import Map
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.guided import OWN, RANDOM, guided_at_image, weights_of
from hookviz.lessons.pictures import picture_of
from hookviz.ui.lessons.picks import choose
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the choice of weights, and three pictures below it."""
    del options
    weights = choose(
        st.segmented_control,
        say("Weights"),
        weights_of(scene),
        key,
        "weights",
        first=OWN,
        format_func={OWN: say("trained"), RANDOM: say("random")}.__getitem__,
        required=True,
    )
    both = guided_at_image(scene, weights)
    image, gradient, guided = st.columns(3, gap="small", wrap=False)
    with image:
        seen = picture_of(scene)  # the crop, of which the gradients are
        st.image(seen, width="stretch", output_format="JPEG", alt=say("The image"))
        st.caption(say("The image"))
    for column, values, title in (
        (gradient, both.plain, say("Gradient")),
        (guided, both.guided, say("Guided, by {count} ReLUs", count=both.relus)),
    ):
        with column:
            st.image(_drawn(values), width="stretch", alt=title)
            st.caption(plain(title))


def _drawn(values: Map) -> bytes:
    """Return the picture: zero in the middle, an end for what one number in a hundred exceeds."""
    sizes = np.nan_to_num(np.abs(values), posinf=0)
    end = float(np.percentile(sizes, 99)) or float(sizes.max()) or 1.0
    limits = make_grid(np.array([[[-end, end]]], np.float32)).limits
    return make_grid(values[None], limits=limits, colormap=diverging()).channel_png(0, 1)
