"""Draw a lens in a lesson: those of its controls that the lesson names, and its panels."""

from dataclasses import replace
from typing import Any

import streamlit as st

from hookviz.drawing.panels import FilePanel, Panel
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lenses.contract.lens import Lens, LensResult
from hookviz.lenses.contract.running import find_lens, look
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.lens import lens_settings, split_names, subject_of
from hookviz.serving.memory_reservations import pass_need
from hookviz.ui.lenses.lens_result import PanelCallbacks, show_result
from hookviz.ui.lenses.lens_widgets import pick_parameters
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Show the lens's result for what the lesson set and the learner chose."""
    lens = find_lens(options["lens"])
    try:
        chosen = lens_settings(scene, options)
        with st.container(key=f"{key}-lens"):
            chosen |= _picked(lens, scene, split_names(options["controls"]))
            result = _result(lens, scene, chosen)
            panels = tuple(panel for panel in result.panels if _is_shown(panel, options["panels"]))
            # nothing in it leads away from the lesson: the link below opens it in the explorer
            nowhere = PanelCallbacks(lambda _layer: None, lambda _digest: None, scene.model)
            show_result(replace(result, panels=panels), nowhere)
    except HookVizError as error:
        st.info(plain(str(error)), icon=":material/info:")


def _picked(lens: Lens, scene: LessonScene, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what the learner chose of the parameters of these names."""
    if not names:
        return {}
    offered = replace(lens, parameters=tuple(p for p in lens.parameters if p.name in names))
    subject = replace(subject_of(scene), cache=resources.session_cache())
    layer = scene.trace.layers[0]  # which no parameter is chosen by: none of these is at the side
    picked = pick_parameters(offered, subject, layer)
    return {name: value for name, value in picked.items() if value is not None}


def _result(lens: Lens, scene: LessonScene, chosen: dict[str, Any]) -> LensResult:
    """Run the lens, or take its result from the session's cache."""
    cache = resources.session_cache()
    said = repr(sorted(chosen.items()))
    key = ("lesson lens", current(), lens.slug, scene.model.digest, scene.model_input.digest, said)
    result: LensResult | None = cache.get(key)
    place = st.empty()  # on every run: what stands below would be mounted anew
    if result is None:
        need = pass_need(scene.model, scene.model_input, keeps_all=True)
        spinner = st.spinner(say("{lens}…", lens=say(lens.title)))
        with (
            place.container(),
            turn(lens.title, lens.slug, model=scene.model.name, need=need) as held,
            spinner,
        ):
            progress = held.limit.within(lambda _share: None)
            subject = replace(subject_of(scene), cache=cache, progress=progress)
            result = look(lens, subject, chosen)
        cache.put(key, result, len(result.npz()) + 1_000_000)
        place.empty()
    return result


def _is_shown(panel: Panel, kinds: str) -> bool:
    """Return whether a panel is of one of the kinds: an overlay is an image, too."""
    own = {kind.__name__.removesuffix("Panel").lower() for kind in type(panel).__mro__}
    return not isinstance(panel, FilePanel) and (not kinds or bool(own & set(split_names(kinds))))
