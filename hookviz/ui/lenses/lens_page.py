"""A lens in the app: its controls made from its declaration, its run, and what it found."""

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import streamlit as st

from hookviz.capturing import engine
from hookviz.drawing.panels import GridPanel, ImagePanel
from hookviz.errors import HookVizError, ImageError
from hookviz.images.samples import samples
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import Parameter
from hookviz.lenses.contract.result import LensResult
from hookviz.lenses.contract.running import list_lenses, look
from hookviz.settings import settings
from hookviz.types import InputImage, LayerInfo, Model, ModelInput
from hookviz.ui.lenses.lens_result import show_result
from hookviz.ui.serving import resources
from hookviz.ui.serving.turns import turn
from hookviz.ui.state import Shown, choose, plain

CHANNELS = "Channels"
"""The choice of no lens: the grid of channels and the explorer."""

_PATIENCE = 0.5  # seconds after which a person wants to know how far it is


def pick_lens() -> Lens | None:
    """Which lens to look through; None for the channels themselves."""
    titles = {f"{lens.group}: {lens.title}": lens for lens in list_lenses()}
    chosen = st.selectbox(
        "Look at",
        [CHANNELS, *titles],
        key="lens",
        bind="query-params",
        help="The channels themselves, or what else the hooks can show of this run.",
    )
    return titles.get(chosen)


def layers_for(lens: Lens | None) -> str:
    """Which kind of layers are offered at the side, as `list_layers` has them."""
    return next((side.kind for side in _sides(lens)), "conv") if lens else "conv"


def start_at(lens: Lens, model: Model, every: Sequence[LayerInfo]) -> None:
    """Begin a lens at the layer that it is made for, unless a layer was chosen already.

    To be called before the widget that picks the layer.
    """
    before, now = st.session_state.get("looked"), (lens.slug, model.name)
    st.session_state["looked"] = now
    if before != now and "layer" not in st.query_params:
        for side in _sides(lens):
            choose(layer=side.start(every))


def _sides(lens: Lens) -> list[kinds.LayerChoice]:
    """The lens's layer, where it is the one chosen at the side."""
    return [
        parameter
        for parameter in lens.parameters
        if isinstance(parameter, kinds.LayerChoice)
        and parameter.name == "layer"
        and parameter.default != "none"
    ]


def show_lens(
    lens: Lens, model: Model, model_input: ModelInput, shown: Shown, layer: LayerInfo
) -> None:
    """The lens's controls, its run with progress and a way to stop it, and what it found."""
    st.header(lens.title, anchor=False)
    st.caption(plain(lens.sentence))
    cache = resources.session_cache()
    subject = Subject(model, model_input, shown.image, cache)
    chosen = _controls(lens, subject, layer)
    key = ("lens", lens.slug, model.name, model.digest, model_input.digest, _fingerprint(chosen))
    result: LensResult | None = cache.get(key)
    if result is None and st.session_state.get("stopped") == key:
        st.info("Stopped.", icon=":material/pause:")
        st.button("Run it", on_click=st.session_state.pop, args=("stopped",))
        return
    with st.container():  # whether it runs or not, what follows stays where it is
        if result is None:
            try:
                result = _run(lens, subject, chosen, key)
            except HookVizError as error:
                st.info(plain(str(error)), icon=":material/info:")
                return
            cache.put(key, result, _nbytes(result))
    show_result(result)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "The numbers as NPZ",
            result.npz,
            f"{model.name}-{lens.slug}.npz",
            "application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
        )
        st.caption(f"took {result.seconds * 1000:,.0f} ms")


def _run(lens: Lens, subject: Subject, chosen: dict[str, Any], key: tuple[str, ...]) -> LensResult:
    """One run, with a bar and a button that ends it where it takes longer than half a second."""
    bar, button = st.empty(), st.empty()
    started = time.perf_counter()
    offered = False

    def report(share: float) -> None:
        nonlocal offered
        if time.perf_counter() - started < _PATIENCE:
            return
        bar.progress(min(1.0, max(0.0, share)), f"{lens.title}…")
        if not offered:  # a click on it starts the page again, which ends this run here
            button.button("Stop", on_click=_stop, args=(key,), icon=":material/stop:")
            offered = True

    with (
        turn(lens.title, lens.slug, model=subject.model.name) as turn_,
        st.spinner(f"{lens.title}…", show_time=False),
    ):
        started = time.perf_counter()  # the wait in the queue has a face of its own
        within = turn_.within(report)
        result = look(
            lens,
            Subject(subject.model, subject.model_input, subject.image, subject.cache, within),
            chosen,
        )
    bar.empty()
    button.empty()
    return result


def _stop(key: tuple[str, ...]) -> None:
    st.session_state["stopped"] = key


def _controls(lens: Lens, subject: Subject, layer: LayerInfo) -> dict[str, Any]:
    """What a person chose of everything that the lens declares."""
    chosen: dict[str, Any] = {}
    sides = _sides(lens)
    chosen.update({side.name: layer.name for side in sides})
    listed = [parameter for parameter in lens.parameters if parameter not in sides]
    for start in range(0, len(listed), 4):
        row = listed[start : start + 4]
        for place, parameter in zip(st.columns(4, gap="medium"), row, strict=False):
            with place:
                widget = next(
                    _WIDGETS[kind] for kind in type(parameter).__mro__ if kind in _WIDGETS
                )
                chosen[parameter.name] = widget(parameter, f"{lens.slug}-{parameter.name}", subject)
    return chosen


# One widget for each kind of parameter: from the parameter, its key and the subject to the choice.


def _layer(parameter: kinds.LayerChoice, key: str, subject: Subject) -> str | None:
    return st.selectbox(
        parameter.label,
        parameter.choices(subject.survey.layers),
        index=None,
        placeholder="automatic",
        key=key,
        help=parameter.help or None,
        bind="query-params",
    )


def _class(parameter: kinds.ClassChoice, key: str, subject: Subject) -> int | None:
    assert subject.cache is not None
    first = [layer.name for layer in subject.survey.layers[:1]]
    kept = engine.is_cached(subject.model, subject.model_input, first, subject.cache)
    name = subject.model.name
    try:
        with (
            st.container(),
            nullcontext() if kept else turn(subject.model.title, "scores", model=name),
        ):
            top = subject.label(subject.top_class)
    except HookVizError:
        return None  # the lens itself says what is missing
    assert subject.scored.logits is not None
    listed = [subject.label(number) for number in range(len(subject.scored.logits))]
    unique = list(dict.fromkeys(listed))
    chosen = st.selectbox(
        parameter.label,
        unique,
        index=None,
        placeholder=f"the likeliest: {top}",
        key=key,
        help=parameter.help or None,
        bind="query-params",
    )
    return None if chosen is None else listed.index(chosen)


def _real_number(
    parameter: kinds.RealNumber | kinds.WholeNumber,
    key: str,
    _subject: Subject,
    **looks: Any,
) -> float:
    return float(
        st.number_input(
            parameter.label,
            float(parameter.low),
            float(parameter.high),
            float(parameter.default),
            key=key,
            help=parameter.help or None,
            bind="query-params",
            **({"format": "%g"} | looks),
        )
    )


def _whole_number(parameter: kinds.WholeNumber, key: str, subject: Subject) -> int:
    # a real number in the widget: Streamlit fails at 1e999 in a link for a whole one
    return round(_real_number(parameter, key, subject, step=1.0, format="%.0f"))


def _one_of(parameter: kinds.OneOf, key: str, _subject: Subject) -> str:
    return st.selectbox(
        parameter.label,
        parameter.choices,
        key=key,
        help=parameter.help or None,
        bind="query-params",
    )


def _switch(parameter: kinds.Switch, key: str, _subject: Subject) -> bool:
    return st.toggle(
        parameter.label,
        parameter.default,
        key=key,
        help=parameter.help or None,
        bind="query-params",
    )


def _channels(parameter: kinds.Channels, key: str, _subject: Subject) -> str:
    return st.text_input(
        parameter.label,
        key=key,
        placeholder="such as 0, 3-7",
        help=parameter.help or None,
        bind="query-params",
    )


def _images(parameter: kinds.MoreImages, key: str, _subject: Subject) -> list[InputImage]:
    files = st.file_uploader(
        parameter.label,
        ("png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "avif"),
        accept_multiple_files=True,
        max_upload_size=settings().upload_mb,
        key=key,
        help=parameter.help or None,
    )
    found: list[InputImage] = []
    pixels, most = 0, settings().max_pixels  # they are all in memory at once
    for file in files:
        found.append(resources.decode(file.getvalue(), file.name, file.file_id))
        pixels += found[-1].width * found[-1].height
        if pixels > most:
            raise ImageError(
                f"Together these images have more than {most / 1e6:,.1f} million pixels "
                "(HOOKVIZ_MAX_PIXELS); give fewer of them, or smaller versions."
            )
    if st.toggle("The samples too", True, key=f"{key}-samples"):
        found += [resources.decode(s.path.read_bytes(), s.title, s.name) for s in samples()]
    return found


_WIDGETS: dict[type[Parameter], Callable[[Any, str, Subject], Any]] = {
    kinds.LayerChoice: _layer,
    kinds.ClassChoice: _class,
    kinds.WholeNumber: _whole_number,
    kinds.RealNumber: _real_number,
    kinds.OneOf: _one_of,
    kinds.Switch: _switch,
    kinds.Channels: _channels,
    kinds.MoreImages: _images,
}


def _fingerprint(chosen: dict[str, Any]) -> str:
    """What tells one choice from another."""
    parts = [
        (name, [image.digest for image in value] if isinstance(value, list) else value)
        for name, value in sorted(chosen.items())
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _nbytes(result: LensResult) -> int:
    """About how much memory a result takes."""
    numbers = sum(np.asarray(value).nbytes for value in result.values.values())
    pictures = sum(
        panel.grid.levels.nbytes if isinstance(panel, GridPanel) else panel.picture.nbytes
        for panel in result.panels
        if isinstance(panel, GridPanel | ImagePanel)
    )
    return numbers + pictures + 100_000
