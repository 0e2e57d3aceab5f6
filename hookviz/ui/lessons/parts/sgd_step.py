"""Draw one training step: class and rate to choose, loss, classes and kernels before and after."""

import numpy as np
import streamlit as st

from hookviz.drawing.pictures import encode_png
from hookviz.explaining.layers.conv_kernels import Kernels
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.first_kernels import in_colour
from hookviz.lessons.parts.sgd_step import CLASS, RATES, classes_to_teach, step_of, verdict
from hookviz.lessons.scores import own_scores
from hookviz.types import Pixels
from hookviz.ui.lessons.class_bars import show_before_and_after
from hookviz.ui.lessons.kernel_sheet import kernel_sheet
from hookviz.ui.lessons.picks import choose, remember_shown
from hookviz.ui.state import plain
from hookviz.wording import number, percent


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, what the step did, and the first kernels with what it added to them."""
    classes, names = classes_to_teach(scene), own_scores(scene)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = choose(
            st.selectbox,
            say("Teach it that this is"),
            classes,
            key,
            CLASS,
            first=classes[0],
            format_func=names.name,
            width=220,
        )
        rate = choose(
            st.segmented_control,
            say("Learning rate"),
            tuple(RATES),
            key,
            "rate",
            first=options["rate"],
            required=True,
            width="content",
        )
    shown = {"rate": rate, CLASS: "" if target == classes[0] else str(target)}
    remember_shown(key, shown, {"rate": options["rate"], CLASS: ""})
    step = step_of(scene, {**options, **shown})
    loss, chance = st.columns(2)
    loss.metric(say("Loss"), f"{number(step.loss_before)} → {number(step.loss_after)}")
    before, after = (float(each.chances[target]) for each in (step.before, step.after))
    chance.metric(
        plain(say("Probability of {label}", label=names.name(target))),
        f"{percent(before)} → {percent(after)}",
    )
    st.markdown(f"**{plain(verdict(step))}**")
    _show_kernels(step.kernels, step.moved, step.layer.name)
    show_before_and_after(step.before, step.after)


def _show_kernels(kernels: Kernels, moved: Kernels, layer: str) -> None:
    """Show the first kernels, what the step added, enlarged, and both together."""
    largest = float(np.abs(moved).max())
    share = largest / (float(np.abs(kernels).max()) or 1.0)
    sheets = (
        (plain(say("First kernels of {layer}", layer=layer)), kernels),
        (say("What the step added, enlarged"), moved),
        (say("After the step"), kernels + moved),
    )
    for column, (title, each) in zip(st.columns(3), sheets, strict=True):
        with column:
            st.image(encode_png(kernel_sheet(_pixels(each), 4)), width="stretch", alt=title)
            st.caption(title)
    st.caption(
        say(
            "The weight that moved most moved by {moved}, {share} of the largest weight.",
            moved=number(largest),
            share=percent(share),
        )
    )


def _pixels(kernels: Kernels) -> Pixels:
    """Return kernels as pictures: three inputs as red, green and blue, else the first one grey."""
    finite = np.nan_to_num(kernels, posinf=0, neginf=0)
    return in_colour(finite if finite.shape[1] == 3 else finite[:, :1].repeat(3, 1))
