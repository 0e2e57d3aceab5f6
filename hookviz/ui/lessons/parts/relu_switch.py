"""Draw the switch for every ReLU, the classes with them and without, and other pictures."""

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.chances import chance
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.relu_switch import OFF, ON, STATES, outcome, switched_off
from hookviz.lessons.pictures import photograph
from hookviz.lessons.sample_scores import MIXED, verdicts
from hookviz.lessons.scores import own_scores
from hookviz.ui.lessons.class_bars import show_before_and_after
from hookviz.ui.lessons.picks import choose, remember_shown
from hookviz.ui.lessons.picture_strip import show_strip
from hookviz.ui.state import plain

_WIDTHS = (2, 5)  # of the image, and of the classes


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the switch; below it the image's classes, and those of other pictures."""
    off = switched_off(scene)
    if not off.count:
        st.info(plain(outcome(scene, ON)), icon=":material/info:")
        show_strip(verdicts(scene, MIXED))
        return
    says = {
        ON: say("{kind} on", kind=off.kinds),
        OFF: say("All {count} switched off", count=off.count),
    }
    state = choose(
        st.segmented_control,
        off.kinds,
        STATES,
        key,
        "relu",
        first=options["relu"],
        format_func=says.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    remember_shown(key, {"relu": state}, options)
    own = own_scores(scene)
    now = own if state == ON else off.scores
    left, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.image(photograph(scene), width="stretch", output_format="JPEG", alt=say("The image"))
    with right:
        show_before_and_after(own, now, titles=(say("With them"), say("Now")), written=chance)
    st.caption(say("What it says of these pictures now"))
    show_strip(verdicts(scene, MIXED, relu=state == ON))
