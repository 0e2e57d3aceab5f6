"""Fill the menus of a view: compare, share, download and copy as code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

import streamlit as st

from hookviz.capturing import engine
from hookviz.capturing.export import npz
from hookviz.capturing.layer_trace import input_trace
from hookviz.codegen.facts import lens_facts_of, picture_facts_of
from hookviz.codegen.lens_script import lens_script
from hookviz.codegen.picture_script import picture_script
from hookviz.drawing.pair import Pair
from hookviz.drawing.panels import GridPanel
from hookviz.errors import HookVizError
from hookviz.explaining.patching.channel_mask import ChannelMask, copied_bytes
from hookviz.explorer.rendering import RenderedGrid
from hookviz.explorer.subject import at_once
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import LensResult
from hookviz.lenses.contract.running import find_lens
from hookviz.models.bundled import BUNDLED
from hookviz.serving.memory_reservations import pass_need
from hookviz.standalone.saving import page_bytes, room_for
from hookviz.types import ActivationKey, LayerInfo, Model
from hookviz.ui.explorer.pinned_view import PIN, pin
from hookviz.ui.explorer.scene import ExplorerScene, grid_now, step_now, view_in_link
from hookviz.ui.link import update_link, words
from hookviz.ui.menu import File, Menu, close_more, offer_files
from hookviz.ui.run_bar import RunBar
from hookviz.ui.serving import resources
from hookviz.ui.serving.explorer_answers import subject_of
from hookviz.ui.serving.explorer_sessions import Scene
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import SILENCED, ImageChoice, plain
from hookviz.wording import byte_size

_ABLATE, _SWITCH_OFF = "ablate", mark("switch off")
_HOW_TO_RUN = mark(
    "run it in a folder that has the image, and the weights if they are no download."
)


def offer_pin(scene: ExplorerScene) -> None:
    """Show a button that pins the explorer's view at the click as A."""
    st.button(
        say("Compare"),
        icon=":material/compare:",
        on_click=_pin,
        args=(scene,),
        help=say("Keep this as A: the image, model or layer that you choose next is B"),
        key="hv-pin",
        width="stretch",
    )


def _pin(scene: ExplorerScene) -> None:
    close_more()
    try:
        step = step_now(scene)
    except HookVizError as error:
        st.toast(plain(str(error)), duration="long")
        return
    pin(scene.image_choice, scene.choice, step, size=scene.size, whole=scene.whole)


def offer_silenced(result: LensResult, scene: ExplorerScene, model: Model) -> None:
    """Show, for a lens that switched channels off, a button that compares with and without them.

    Other edits of the lens are no state of a network.
    """
    if result.lens != _ABLATE or result.chosen["mode"] != _SWITCH_OFF:
        return
    layer = str(result.chosen["layer"])
    mask = ChannelMask(layer, tuple(map(int, result.values["channels"])))
    grids = [each for each in result.panels if isinstance(each, GridPanel) and each.layer]
    st.button(
        say("Compare in the explorer"),
        icon=":material/compare:",
        on_click=_compare,
        args=(scene, mask, grids[-1].layer if grids else layer),
        help=(why := _refusal(scene, mask, model))
        or say("Keep the network as it is as A, and look at the one without these channels, B"),
        key="hv-pin-silenced",
        disabled=bool(why),
    )


def _refusal(scene: ExplorerScene, mask: ChannelMask, model: Model) -> str:
    """Return why the network can't be silenced so, or an empty string."""
    before = scene.choice.mask
    if before is not None:
        return say(
            "{channels} are silent already: bring them back in the sidebar first.",
            channels=before.words,
        )
    try:
        copied_bytes(model, mask)
    except HookVizError as error:
        return str(error)
    return ""


def _compare(scene: ExplorerScene, mask: ChannelMask, layer: str) -> None:
    pin(scene.image_choice, scene.choice, ActivationKey(layer), size=scene.size, whole=scene.whole)
    with resources.use_model(scene.choice) as model:
        convs = input_trace(model, scene.model_input).convs
    first = convs[0].name if convs else None
    update_link(
        lens=None,
        layer=None if layer == first else layer,
        after=None,
        channel=None,
        cell=None,
        **{SILENCED: str(mask)},
    )


def share_menu(image_choice: ImageChoice) -> Menu:
    """Return the menu *Share*: the link to copy, and a warning for a photograph, which it lacks."""
    fill = partial(_show_link, is_own=image_choice.file is None)
    return Menu(say("Share"), "share", "share", fill, say("A link to what is on the screen"))


def _show_link(*, is_own: bool) -> None:
    if is_own:
        st.warning(
            say(
                "Your photograph is not in the link: it stays in your session. Whoever opens "
                "the link sees the same model, layer and channel with a sample image."
            ),
            icon=":material/no_photography:",
        )
    else:
        st.caption(say("Whoever opens this link sees the same."))
    base = str(st.context.url or "").partition("?")[0]
    query = urlencode(words())
    st.code(f"{base}?{query}" if query else base, None, wrap_lines=True)


def download_menu(scene: ExplorerScene) -> Menu:
    """Return the menu *Download*: the figure, grid, numbers and page of a view."""
    label = say("Download")
    return Menu(label, "download", f"menu-{label}", partial(_show_downloads, scene))


def _show_downloads(scene: ExplorerScene) -> None:
    drawn = grid_now(scene)
    offer_files(_files_of_grid(scene, drawn))
    _offer_page(scene, drawn.resolved.layers)


def _files_of_grid(scene: ExplorerScene, drawn: RenderedGrid) -> Sequence[File]:
    grid, capture = drawn.own, drawn.capture
    stem = f"{capture.model}-{grid.title}"
    figure = partial(grid.figure_bytes, title=f"{scene.choice.spec.title} · {grid.title}")
    return (
        File(say("Figure as PNG"), partial(figure, "png"), f"{stem}-figure.png", "image/png"),
        File(say("Figure as PDF"), partial(figure, "pdf"), f"{stem}-figure.pdf", "application/pdf"),
        File(say("Grid as PNG"), grid.png, f"{stem}.png", "image/png"),
        *(_files_of_pair(drawn.compared.pair, stem) if drawn.compared is not None else ()),
        File(
            say("Activations as NPZ"),
            partial(npz, capture),
            f"{stem}.npz",
            "application/octet-stream",
        ),
    )


def _files_of_pair(pair: Pair, stem: str) -> Sequence[File]:
    """Return the files of a comparison, drawn on one scale."""
    grids = {"A": pair.a, "B": pair.b, "B − A": pair.difference}
    return tuple(
        File(
            say("{name} as PNG", name=name),
            grid.png,
            f"{stem}-{name.replace(' − ', '-')}.png",
            "image/png",
        )
        for name, grid in grids.items()
        if grid is not None
    )


def _offer_page(scene: ExplorerScene, layers: Sequence[LayerInfo]) -> None:
    """Show a button that makes the page of these layers, or the page's file once it is made.

    The page has every layer, cell and sort of this image and network.
    """
    with resources.use_model(scene.choice) as model:
        answer_scene = scene.for_answers(model, is_compared=False)
        cache = resources.session_cache()
        is_on_map = view_in_link().inside is not None
        key = ("page", answer_scene.key, is_on_map, *(layer.name for layer in layers))
        page: bytes | None = cache.get(key)
        element = st.empty()
        if page is None and element.button(
            say("Make a page"),
            key="hv-make-page",
            help=say("One HTML file with all these layers: it opens without a server."),
            width="stretch",
        ):
            with st.container(horizontal=True, vertical_alignment="center"):
                bar = RunBar(say("Page"))
                try:
                    page = _make_page(answer_scene, model, layers, bar)
                except HookVizError as error:
                    st.info(plain(str(error)), icon=":material/info:")
                else:
                    cache.put(key, page, len(page))
                    element.empty()
                bar.end()
    if page is not None:
        st.download_button(
            say("Page as HTML, {size}", size=byte_size(len(page))),
            page,
            f"{scene.choice.spec.name}.html",
            "text/html",
            key="hv-page",
            on_click="ignore",
            width="stretch",
        )


def _make_page(scene: Scene, model: Model, layers: Sequence[LayerInfo], bar: RunBar) -> bytes:
    """Make the page in one job slot, which is shared after each layer."""
    need = pass_need(model, scene.model_input)
    with turn(say("Page"), "page", model=model.name, need=need) as slot:
        bar.start(slot)
        capture = engine.capture(
            model,
            scene.model_input,
            [layer.name for layer in layers],
            cache=scene.cache,
            progress=slot.limit.within(),
        )
        subject = subject_of(scene, model, at_once)
        subject = replace(subject, cache=room_for(capture), shared=None)
        return page_bytes(
            subject, layers, view=view_in_link(), progress=slot.yielding(bar.report, bar.wait)
        )


def code_menu(scene: ExplorerScene) -> Menu:
    """Return the menu *Copy as code* of the explorer's grid."""

    def about() -> str:
        what = (
            say("B by itself, on a scale of its own,")
            if st.query_params.get(PIN)
            else say("the same picture")
        )
        return say(
            "This draws {picture} without HookViz, pixel for pixel: {how}",
            picture=what,
            how=say(_HOW_TO_RUN),
        )

    return _code_menu(scene, "hookviz_picture.py", about, partial(_picture_code, scene))


def _picture_code(scene: ExplorerScene, model: Model) -> str:
    drawn, view = grid_now(scene), view_in_link()
    has_channel = view.channel in drawn.grid.order and not drawn.is_of_a  # of A none is picked
    facts = picture_facts_of(
        model,
        _file_name(scene),
        drawn.own,
        size=scene.size,
        whole=scene.whole,
        channel=view.channel if has_channel else None,
    )
    return picture_script(facts)


def lens_code_menu(result: LensResult, scene: ExplorerScene) -> Menu:
    """Return the menu *Copy as code* of a lens's result."""

    def about() -> str:
        return say(
            "This computes the same numbers without HookViz, and writes them as NPZ: {how}",
            how=say(_HOW_TO_RUN),
        )

    write = partial(_lens_code, result, scene)
    return _code_menu(scene, f"hookviz_{result.lens}.py", about, write)


def _lens_code(result: LensResult, scene: ExplorerScene, model: Model) -> str:
    facts = lens_facts_of(
        model,
        _file_name(scene),
        result,
        shape=tuple(scene.model_input.tensor.shape[1:]),
        size=scene.size,
        whole=scene.whole,
    )
    return lens_script(facts, find_lens(result.lens).script)


def _file_name(scene: ExplorerScene) -> str:
    chosen = scene.image_choice
    return chosen.file.name if chosen.file else chosen.image.name


def _code_menu(
    scene: ExplorerScene, name: str, about: Callable[[], str], write: Callable[[Model], str]
) -> Menu:
    fill = partial(_show_script, scene, name, about, write)
    return Menu(say("Copy as code"), "code", "code", fill)


def _show_script(
    scene: ExplorerScene, name: str, about: Callable[[], str], write: Callable[[Model], str]
) -> None:
    """Show the script, and buttons for it and for our files that it reads."""
    if scene.choice.mask is not None:
        st.caption(
            say("There is no script for a network with silent channels: bring them back first.")
        )
        return
    try:
        with resources.use_model(scene.choice) as model:
            code = write(model)
            bundled = BUNDLED.get(model.name) if model.weights == "pretrained" else None
    except HookVizError as error:
        st.caption(plain(str(error)))
        return
    weights = bundled.weights_file if bundled else None
    st.caption(about())
    st.code(code, "python", height=420)
    with st.container(horizontal=True):
        st.download_button(say("The script"), code, name, "text/x-python", on_click="ignore")
        for label, file, mime in (
            (say("The image"), scene.image_choice.file, "image/jpeg"),
            (say("The weights"), weights, "application/octet-stream"),
        ):
            if file is not None:
                st.download_button(label, file.read_bytes, file.name, mime, on_click="ignore")
