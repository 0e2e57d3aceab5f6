"""Draw the first kernels as they began beside those that training made of them."""

import math

import streamlit as st

from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.first_kernels import first_kernels, in_colour
from hookviz.ui.lessons.kernel_sheet import kernel_sheet
from hookviz.ui.state import plain

_COLOURS = 3


def show(scene: LessonScene, _options: Options, _key: str) -> None:
    """Draw both sheets, each kernel at the same place in both."""
    kernels = first_kernels(scene)
    sheets = [(say("As training left them"), kernels.after)]
    if kernels.before is not None:
        sheets.insert(0, (say("As they began: random"), kernels.before))
    elif scene.model.weights == "random":
        sheets = [(say("Random, as your network's weights are"), kernels.after)]
    across = math.ceil(math.sqrt(len(kernels.after)))
    for column, (title, each) in zip(st.columns(2), sheets, strict=False):
        with column:
            st.markdown(f"**{title}**")
            st.image(encode_png(kernel_sheet(in_colour(each), across)), width="stretch", alt=title)
    said = say(
        "Kernels of {layer}, each by its own largest weight; grey is zero.",
        layer=kernels.layer.name,
    )
    if kernels.inputs != _COLOURS:
        said += " " + say(
            "They have {inputs} inputs, of which you see the first.", inputs=kernels.inputs
        )
    if scene.model.weights == "random":
        said += " " + say("Choose trained weights, and you see what became of them.")
    st.caption(plain(said))
