"""Run a short plain-PyTorch script with chosen constants, and show its output and its lines.

On a person's own computer an editor runs changed lines.
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
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scripts import (
    Control,
    Script,
    ScriptRun,
    Value,
    after_set_up,
    can_run_apart,
    cells,
    in_the_language,
    on_scene,
    read_script,
    run_on_scene,
    run_script,
    set_up_of,
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

_LAYER = "LAYER"  # chosen first: it decides the number of channels
CHOICES, EDITED = "choices", "edited"
"""Options that the page adds, as JSON: the chosen constants, and the facts of edited lines."""


def _check_script(name: str) -> str:
    try:
        read_script(name)
    except UnknownNameError as error:
        return str(error)
    return ""


def chosen_script(
    name: str, scene: LessonScene, choices: Mapping[str, Value]
) -> tuple[Script, dict[str, Value]]:
    """Return the script for the scene, and the choices that it offers there.

    A link has choices, perhaps for another network.
    """
    read = read_script(name)
    script = in_the_language(on_scene(read, scene, choices.get(_LAYER)), read)
    offered = {control.name: control.values for control in script.controls}
    return script, {key: value for key, value in choices.items() if value in offered.get(key, ())}


def run(script: Script, scene: LessonScene, choices: Mapping[str, Value]) -> ScriptRun:
    """Run the script with those choices, on the scene if it needs one."""
    if read_script(script.name).needs_scene:
        return run_on_scene(script, scene, choices)
    return run_script(script, choices)


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    """Return the values of the script's names at its end, with choices and edits."""
    script, choices = chosen_script(
        options["script"], scene, json.loads(options.get(CHOICES, "{}"))
    )
    return {**run(script, scene, choices).facts, **json.loads(options.get(EDITED, "{}"))}


_OPEN, _FOLDED = "open", "folded"

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
            _check_script,
        ),
        Option(
            "code",
            _OPEN,
            mark("Whether the lines with the hook are open at first: open or folded."),
            choice((_OPEN, _FOLDED)),
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
"""Titles of pictures in our scripts, for translation."""
_IMAGE = "image"  # a script's name for its input; all other pictures share one scale
_BUTTONS = 5  # values; more are a slider
_SLIDER_PX = 150
_FAR_APART = 100  # ratio at which the axis of a chart becomes logarithmic
_MAP_PX = 144
_LARGE_PX = 280  # above folded code


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw a script's constants, its output and its lines, or the editor of those."""
    name = options["script"]
    if is_edited(key) and may_run_code():
        _show_edited(scene, name, key)
        return
    script, choices = _chosen(scene, name, key)
    changed = json.dumps(_changed(script, choices))
    remember_options(key, {CHOICES: changed, EDITED: "{}"}, {CHOICES: "{}", EDITED: "{}"})
    code = script.with_choices(choices)
    with turn(say("The lesson's script"), "lesson", model=scene.model.name):
        result = run(script, scene, choices)
    if result.bars:
        _show_bars(result.bars, key)
    is_folded = options["code"] == _FOLDED
    _show_output(result.printed, result.pictures, key, _LARGE_PX if is_folded else _MAP_PX)
    above = "pictures" if result.pictures else "lines"
    if result.bars:
        above = "chart"
    constants = tuple(choices)
    _show_code(script, code, constants, above, is_folded=is_folded)
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
        st.caption(_about(script, scene), width="stretch")


def _about(script: Script, scene: LessonScene) -> str:
    """Describe the run, and why its lines can't be edited."""
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
    """Show the controls of all constants, and return the script with its choices."""
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


def _changed(script: Script, choices: Mapping[str, Value]) -> dict[str, Value]:
    """Return the choices that differ from the script's start."""
    starts = {control.name: control.start for control in script.controls}
    # the script starts with the chosen layer
    layers = (each.values[0] for each in script.controls if each.name == _LAYER)
    starts[_LAYER] = next(layers, "")
    return {name: value for name, value in choices.items() if value != starts[name]}


def _choose(control: Control, key: str) -> Value:
    """Show the control for a constant, and return its value."""
    if control.name == _LAYER:
        widget: Callable[..., Any] = partial(st.selectbox, width=_SLIDER_PX)
    elif len(control.values) > _BUTTONS:
        widget = partial(st.select_slider, width=_SLIDER_PX)
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


def _show_code(
    script: Script, code: str, constants: tuple[str, ...], above: str, *, is_folded: bool
) -> None:
    """Show the lines with the hook, maybe folded, and folded below them those before and after.

    `above` is the kind of output above them, for which they leave room: chart, pictures or lines.
    """
    label = say("The code of {name}.py", name=script.name)
    title = say("Set-up, which ran before")
    if script.needs_scene:
        title = say("Set-up: your network and image")
    (_, hook), *rest = cells(after_set_up(code))
    hook = re.sub("\n{3,}", "\n\n", hook.strip()) + "\n"
    folded = [(say("The lines with the hook"), hook)] if is_folded else []
    if not is_folded:
        html = script_html(hook, constants, label)
        st.html(f'<div class="hv-script-below-{above}">{html}</div>')
    folded.append((title, set_up_of(code)))
    folded += [(say("Then: what is printed and drawn"), lines.strip() + "\n") for _, lines in rest]
    details = "".join(folded_html(lines, each) for each, lines in folded)
    st.html(f'<div class="hv-script-folds">{details}</div>')


def _show_edited(scene: LessonScene, name: str, key: str) -> None:
    """Show the editor, and the output of the last run."""
    script, _ = chosen_script(name, scene, {})
    edit(scene, script, key)
    result = edited_run(key)
    known = run(script, scene, {}).facts.keys()
    facts = {name: value for name, value in result.facts.items() if name in known} if result else {}
    remember_options(key, {EDITED: json.dumps(facts)}, {EDITED: json.dumps({})})
    if result is None:
        return
    if result.fault:
        st.error(plain(result.fault), icon=":material/error:")
    _show_output(result.printed, result.pictures, key)


def _show_output(
    printed: tuple[str, ...],
    pictures: Mapping[str, NDArray[np.float32]],
    key: str,
    width_px: int = _MAP_PX,
) -> None:
    """Show a script's printed lines beside its pictures."""
    with st.container(horizontal=True, gap="small"):
        _show_pictures(pictures, width_px)
        if printed:
            with st.container(width="stretch", key=f"hv-printed {key}"):
                st.code("\n".join(printed), language=None, wrap_lines=True)


def _show_pictures(pictures: Mapping[str, NDArray[np.float32]], width_px: int) -> None:
    """Show the maps side by side on one scale, symmetric if any value is below zero."""
    maps = {title: values for title, values in pictures.items() if title != _IMAGE}
    size = max((float(np.abs(values).max()) for values in maps.values()), default=0.0) or 1.0
    signed = any((values < 0).any() for values in maps.values())
    for title, values in pictures.items():
        with st.container(width=width_px):
            grid = _grid(values, title, size, signed=signed)
            magnified = max(1, width_px // max(values.shape))
            label = say(title) if title in _TITLES else title
            alt = f"{label}: {grid.legend}"
            st.image(grid.channel_png(0, magnified), width=width_px, alt=alt)
            span = say(
                "{title}: from {low} to {high}",
                title=label,
                low=number(float(values.min())),
                high=number(float(values.max())),
            )
            st.caption(plain(span))


def _grid(values: NDArray[np.float32], title: str, size: float, *, signed: bool) -> Grid:
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
