"""Run a short plain-PyTorch script with chosen constants, and show what it prints and draws.

The page draws below that the script's lines with the hook, and an editor of them.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.errors import UnknownNameError
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.script_scene import (
    after_set_up,
    can_run_apart,
    on_scene,
    run_on_scene,
    set_up_of,
)
from hookviz.lessons.scripts import (
    Control,
    Script,
    ScriptRun,
    Value,
    cells,
    in_the_language,
    read_script,
    run_script,
)
from hookviz.ui.components.panels import chart
from hookviz.ui.lessons.picks import choose, remember_options
from hookviz.ui.lessons.script_editor import (
    edit,
    edited_run,
    folded_html,
    is_edited,
    offer_to_edit,
    script_html,
)
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.serving.visitors import may_run_code
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_LAYER = "LAYER"  # chosen first, since it says how many channels there are


def _fault(name: str) -> str:
    try:
        read_script(name)
    except UnknownNameError as error:
        return str(error)
    return ""


CHOICES, EDITED = "choices", "edited"
"""Among the options, as JSON, the constants that were chosen, and the facts of edited lines."""


def chosen_script(
    name: str, scene: LessonScene, choices: Mapping[str, Value]
) -> tuple[Script, dict[str, Value]]:
    """Return the script for the scene, and of what was chosen that which it offers there.

    Choices come from links, which may have been made for another network.
    """
    read = read_script(name)
    script = in_the_language(on_scene(read, scene, choices.get(_LAYER)), read)
    offered = {control.name: control.values for control in script.controls}
    kept = {key: value for key, value in choices.items() if value in offered.get(key, ())}
    return script, kept


def run(script: Script, scene: LessonScene, choices: Mapping[str, Value]) -> ScriptRun:
    """Run the script with those choices, on the scene where it needs one."""
    if read_script(script.name).needs_scene:
        return run_on_scene(script, scene, choices)
    return run_script(script, choices)


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    """Return what the script's own names hold at its end: as it is, as was chosen, or edited."""
    choices = json.loads(options.get(CHOICES, "{}"))
    script, kept = chosen_script(options["script"], scene, choices)
    return {**run(script, scene, kept).facts, **json.loads(options.get(EDITED, "{}"))}


PART = Part(
    name="hook-code",
    sentence=mark(
        "A short plain-PyTorch script, its lines with the hook first and its set-up folded away; "
        "its constants can be chosen and, on one's own machine, its lines edited. Its numbers and "
        "words are facts under the names that they have in the script."
    ),
    options=(
        Option(
            "script",
            None,
            mark("A file of assets/lessons/code, without its ending, such as see."),
            _fault,
        ),
    ),
    facts=_facts,
)


_TITLES = frozenset(
    {
        *(mark("image"), mark("what it put out"), mark("as kept"), mark("as put out")),
        *(mark("as it was"), mark("changed"), mark("gradient"), mark("guided")),
    }
)
"""What our scripts call their pictures, said in the page's language."""
_IMAGE = "image"  # what a script calls the picture that it looks at; all others share one scale
_BUTTONS = 5  # values; more are a slider
_SLIDER = 150  # pixels
_FAR_APART = 100  # times; from there on the axis of a chart is logarithmic
_WIDE = 144  # pixels of a map


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw a script's constants, what came of it and its lines, or the editor of those."""
    name = options["script"]
    if is_edited(key) and may_run_code():
        _show_edited(scene, name, key)
        return
    script, choices = _chosen(scene, name, key)
    chosen = _differing(script, choices)
    remember_options(
        key,
        {CHOICES: json.dumps(chosen), EDITED: json.dumps({})},
        {CHOICES: json.dumps({}), EDITED: json.dumps({})},
    )
    code = script.with_choices(choices)
    with turn(say("The lesson's script"), "lesson", model=scene.model.name):
        came = run(script, scene, choices)
    if came.bars:
        _show_bars(came.bars, key)
    _show_outcome(came.printed, came.pictures, key)
    above = "pictures" if came.pictures else "lines"
    if came.bars:
        above = "chart"
    _show_code(script, code, tuple(choices), above)
    with st.container(horizontal=True, vertical_alignment="center"):
        if script.needs_scene and can_run_apart(scene) and may_run_code():
            offer_to_edit(key, after_set_up(code))
        st.download_button(
            say("Download"),
            code,
            f"{script.name}.py",
            "text/x-python",
            icon=":material/download:",
            type="tertiary",
            key=f"{key} file",
            on_click="ignore",
        )
        st.caption(_says(script, scene), width="stretch")


def _says(script: Script, scene: LessonScene) -> str:
    """Return what ran, and why it can't be edited where it can't."""
    if not script.needs_scene:
        return say("This very code ran, with what you chose. It runs without HookViz, too.")
    ran = say("These lines ran on your network and image. They run without HookViz, too.")
    if not can_run_apart(scene):
        own = say("Your own network is made by code of yours: fill that in where you run them.")
        return f"{ran} {own}"
    if may_run_code():
        return ran
    shared = say(
        "This server runs nobody's own lines, since others use it as well. Where you start HookViz "
        "on your own computer, by hookviz run, you can edit them here."
    )
    return f"{ran} {shared}"


def _chosen(scene: LessonScene, name: str, key: str) -> tuple[Script, dict[str, Value]]:
    """Show the controls of all constants, and return the script and what is chosen of it."""
    script, _ = chosen_script(name, scene, {})
    choices: dict[str, Value] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for control in script.controls:
            if control.name == _LAYER:
                choices[_LAYER] = _choose(control, key)
                script, _ = chosen_script(name, scene, choices)
        for control in script.controls:
            if control.name != _LAYER:
                choices[control.name] = _choose(control, key)
    return script, choices


def _differing(script: Script, choices: Mapping[str, Value]) -> dict[str, Value]:
    """Return what was chosen otherwise than the script begins; of a layer's channels all."""
    starts = {control.name: control.start for control in script.controls}
    first = {control.name: control.values[0] for control in script.controls}
    starts[_LAYER] = first.get(_LAYER, "")  # the script is that of the layer which was chosen
    return {name: value for name, value in choices.items() if value != starts[name]}


def _choose(control: Control, key: str) -> Value:
    """Show the control for a constant, and return its value."""
    if control.name == _LAYER:
        widget: Callable[..., Any] = partial(st.selectbox, width=_SLIDER)
    elif len(control.values) > _BUTTONS:
        widget = partial(st.select_slider, width=_SLIDER)
    else:
        widget = partial(st.segmented_control, required=True, width="content")
    return choose(
        widget,
        control.name,
        control.values,
        key,
        control.name,
        first=control.start,
        format_func=str,
    )


def _show_code(script: Script, code: str, constants: tuple[str, ...], above: str) -> None:
    """Show the lines with the hook, and folded below them what runs before and after.

    They leave room for what came of them: a chart, pictures or lines `above`, where one looks
    when a constant is moved.
    """
    label = say("The code of {name}.py", name=script.name)
    title = say("Set-up, which ran before")
    if script.needs_scene:
        title = say("Set-up: your network and image")
    (_, hook), *rest = cells(after_set_up(code))
    shown = script_html(re.sub("\n{3,}", "\n\n", hook.strip()) + "\n", constants, label)
    st.html(f'<div class="hv-script-below-{above}">{shown}</div>')
    folded = [(title, set_up_of(code))]
    folded += [(say("Then: what is printed and drawn"), lines.strip() + "\n") for _, lines in rest]
    details = "".join(folded_html(lines, each) for each, lines in folded)
    st.html(f'<div class="hv-script-folds">{details}</div>')


def _show_edited(scene: LessonScene, name: str, key: str) -> None:
    """Show the editor, and what came of the lines when they were run last."""
    script, _ = chosen_script(name, scene, {})
    edit(scene, script, key)
    came = edited_run(key)
    facts = dict(came.facts) if came else {}
    known = run(script, scene, {}).facts.keys()
    told = {fact: value for fact, value in facts.items() if fact in known}
    remember_options(key, {EDITED: json.dumps(told)}, {EDITED: json.dumps({})})
    if came is None:
        return
    if came.fault:
        st.error(plain(came.fault), icon=":material/error:")
    _show_outcome(came.printed, came.pictures, key)


def _show_outcome(
    printed: tuple[str, ...], pictures: Mapping[str, NDArray[np.float32]], key: str
) -> None:
    """Show what came of a script, what it printed beside what it drew."""
    with st.container(horizontal=True, gap="small"):
        _show_pictures(pictures)
        if printed:
            with st.container(width="stretch", key=f"hv-printed {key}"):
                st.code("\n".join(printed), language=None, wrap_lines=True)


def _show_pictures(pictures: Mapping[str, NDArray[np.float32]]) -> None:
    """Show the maps side by side, on one scale, symmetric where values are below zero."""
    maps = {title: values for title, values in pictures.items() if title != _IMAGE}
    size = max((float(np.abs(values).max()) for values in maps.values()), default=0.0) or 1.0
    signed = any((values < 0).any() for values in maps.values())
    for title, values in pictures.items():
        with st.container(width=_WIDE):
            grid = _drawn(values, title, size, signed=signed)
            magnified = max(1, _WIDE // max(values.shape))
            said = say(title) if title in _TITLES else title
            alt = f"{said}: {grid.legend}"
            st.image(grid.channel_png(0, magnified), width=_WIDE, alt=alt)
            span = say(
                "{title}: from {low} to {high}",
                title=said,
                low=number(float(values.min())),
                high=number(float(values.max())),
            )
            st.caption(plain(span))


def _drawn(values: NDArray[np.float32], title: str, size: float, *, signed: bool) -> Grid:
    if title == _IMAGE:
        return make_grid(values[None], colormap="gray", title=title)
    ends = make_grid(np.array([[[-size if signed else 0.0, size]]], np.float32))
    colormap = diverging() if signed else "viridis"
    return make_grid(values[None], limits=ends.limits, colormap=colormap, title=title)


def _show_bars(bars: Mapping[str, NDArray[np.float64]], key: str) -> None:
    heights = np.concatenate(list(bars.values()))
    above = heights[heights > 0]
    panel = ChartPanel(
        say("What the script measured"),
        tuple(str(index + 1) for index in range(len(next(iter(bars.values()))))),
        bars,
        unit=say("by layer"),
        log=bool(len(above) and above.max() > _FAR_APART * above.min()),
    )
    chart(panel, f"{key} chart", None)
