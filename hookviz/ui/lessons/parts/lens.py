"""Run any lens on the lesson's image, with the lesson's settings and controls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from hookviz.drawing.panels import FilePanel, Panel
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lenses.contract.lens import Lens, LensResult
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice
from hookviz.lenses.contract.running import check_names, find_lens, look
from hookviz.lessons.layers import STRONGEST, first_layer_of, maps_of, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.serving.memory_reservations import pass_need
from hookviz.ui.lenses.lens_result import PanelCallbacks, show_result
from hookviz.ui.lenses.lens_widgets import pick_parameters
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain

_KINDS = ("text", "image", "pictures", "grid", "maps", "chart", "table", "tree")
"""Kinds of panels, by the first word of their class's name."""


def _split_names(text: str) -> tuple[str, ...]:
    """Split a list of names with commas."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _lens_settings(scene: LessonScene, options: Options) -> dict[str, Any]:
    """Return the lesson's parameters of the lens by name, unchecked.

    Raises:
        SettingError: the lens has no parameter of such a name.
        UnknownLayerError: the network has no such layer.
    """
    lens = find_lens(options["lens"])
    chosen: dict[str, Any] = _settings(options["settings"])
    if options["layer"]:
        chosen["layer"] = options["layer"]
    check_names(lens, (*chosen, *_split_names(options["controls"])))
    if "layer" in chosen:
        chosen["layer"] = first_layer_of(scene, _split_names(chosen["layer"])).name
    if chosen.get("channel") == STRONGEST:
        maps = maps_of(scene, chosen["layer"])
        channel = strongest_first(maps, 1)[0]
        row, column = divmod(int(maps[channel].argmax()), maps.shape[2])
        chosen |= {"channel": channel, "row": row, "column": column}
    return chosen


def resolve_all(scene: LessonScene, options: Options) -> dict[str, Any]:
    """Return every parameter of the lens, with defaults filled in.

    Raises:
        HookVizError: the lens or this network refuses a value.
    """
    chosen = _lens_settings(scene, options)
    return {
        parameter.name: parameter.resolve(chosen.get(parameter.name), scene)
        for parameter in find_lens(options["lens"]).parameters
    }


def _settings(text: str) -> dict[str, Any]:
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    lens = find_lens(options["lens"])
    chosen = resolve_all(scene, options)
    facts: dict[str, Fact] = {
        name: value for name, value in chosen.items() if isinstance(value, str | int | float)
    }
    for parameter in lens.parameters:
        if isinstance(parameter, ClassChoice) and chosen[parameter.name] is not None:
            facts[parameter.name] = scene.label(chosen[parameter.name])
    return {"lens": lens.title, "question": lens.question, **facts}


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    """Return the page's link to the lens with the lesson's settings."""
    lens, chosen = find_lens(options["lens"]), _lens_settings(scene, options)
    link = {"lens": lens.slug}
    for parameter in lens.parameters:
        if parameter.name not in chosen or chosen[parameter.name] is None:
            continue
        is_at_side = isinstance(parameter, LayerChoice) and parameter.name == "layer"
        is_shared = is_at_side or parameter.name == "channel"
        word = parameter.name if is_shared else f"{lens.slug}-{parameter.name}"
        link[word] = str(chosen[parameter.name])
    return link


def _check_lens(value: str) -> str:
    try:
        find_lens(value)
    except HookVizError as error:
        return str(error)
    return ""


def _check_settings(value: str) -> str:
    bad = [part.strip() for part in value.split(";") if part.strip() and "=" not in part]
    return (
        say("{part!r} is not a name and a value such as method=LayerCAM.", part=bad[0])
        if bad
        else ""
    )


def _check_controls(value: str) -> str:
    wrong = "layer" in _split_names(value)
    return say("The layer is set by the lesson: it has an option of its own.") if wrong else ""


def _check_panels(value: str) -> str:
    return next(filter(None, map(choice(_KINDS), _split_names(value))), "")


PART = Part(
    name="lens",
    sentence="What a lens shows of the image, with those of its settings that the lesson leaves "
    "to choose.",
    options=(
        Option("lens", None, "The lens's name in links, such as grad-cam.", _check_lens),
        Option(
            "layer",
            "",
            "The layer, for a lens that takes one, or a list, whose first existing layer counts; "
            "without, the lens's own choice.",
        ),
        Option(
            "settings",
            "",
            "Other settings of the lens, such as target=star; method=LayerCAM. With "
            "channel=strongest it takes the layer's strongest channel and cell.",
            _check_settings,
        ),
        Option(
            "controls",
            "",
            "The settings that the learner can change, such as target, method.",
            _check_controls,
        ),
        Option(
            "panels",
            "",
            f"What of it is shown, of {', '.join(_KINDS)}; without, all.",
            _check_panels,
        ),
    ),
    facts=_facts,
    link=_link,
)


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Show the lens's result with the lesson's settings and the learner's choices."""
    lens = find_lens(options["lens"])
    try:
        chosen = _lens_settings(scene, options)
        with st.container(key=f"{key}-lens"):
            chosen |= _picked(lens, scene, _split_names(options["controls"]))
            result = _result(lens, scene, chosen)
            panels = tuple(each for each in result.panels if _is_of_kind(each, options["panels"]))
            # no click leaves the lesson: the link below opens the explorer
            no_callbacks = PanelCallbacks(lambda _layer: None, lambda _digest: None, scene.model)
            show_result(replace(result, panels=panels), no_callbacks)
    except HookVizError as error:
        st.info(plain(str(error)), icon=":material/info:")


def _picked(lens: Lens, scene: LessonScene, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the learner's choices of the parameters of these names."""
    if not names:
        return {}
    offered = replace(lens, parameters=tuple(p for p in lens.parameters if p.name in names))
    subject = replace(scene, cache=resources.session_cache())
    layer = scene.trace.layers[0]  # unused: no parameter is chosen at the side
    picked = pick_parameters(offered, subject, layer)
    return {name: value for name, value in picked.items() if value is not None}


def _result(lens: Lens, scene: LessonScene, chosen: dict[str, Any]) -> LensResult:
    """Run the lens, or return its result from the session's cache."""
    cache = resources.session_cache()
    values = repr(sorted(chosen.items()))
    digests = scene.model.digest, scene.model_input.digest
    key = ("lesson lens", current(), lens.slug, *digests, values)
    result: LensResult | None = cache.get(key)
    element = st.empty()  # on every run: the elements below stay in position
    if result is None:
        need = pass_need(scene.model, scene.model_input, keeps_all=True)
        spinner = st.spinner(say("{lens}…", lens=say(lens.title)))
        with (
            element.container(),
            turn(lens.title, lens.slug, model=scene.model.name, need=need) as slot,
            spinner,
        ):
            progress = slot.limit.within(lambda _share: None)
            subject = replace(scene, cache=cache, progress=progress)
            result = look(lens, subject, chosen)
        cache.put(key, result, len(result.npz()) + 1_000_000)
        element.empty()
    return result


def _is_of_kind(panel: Panel, kinds: str) -> bool:
    """Return whether a panel is of one of the kinds; an overlay is an image too."""
    own = {kind.__name__.removesuffix("Panel").lower() for kind in type(panel).__mro__}
    return not isinstance(panel, FilePanel) and (not kinds or bool(own & set(_split_names(kinds))))
