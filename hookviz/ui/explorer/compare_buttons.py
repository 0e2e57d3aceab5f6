"""Show the buttons that pin what is on the screen as A, to hold what is looked at next against."""

import streamlit as st

from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.panels import GridPanel
from hookviz.errors import HookVizError
from hookviz.explaining.patching.channel_mask import ChannelMask, copied_bytes
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import LensResult
from hookviz.types import ActivationKey, Model
from hookviz.ui.explorer.pinned_view import pin
from hookviz.ui.explorer.scene import ExplorerScene, step_now
from hookviz.ui.link import update_link
from hookviz.ui.menu import close_more
from hookviz.ui.serving import resources
from hookviz.ui.state import SILENCED, choose, plain

_LENS, _MODE = "ablate", mark("switch off")


def offer_pin(scene: ExplorerScene) -> None:
    """Show a button that pins what the explorer shows as A, as it is when the button is pressed."""
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
    pin(scene.shown, scene.choice, step, size=scene.size, whole=scene.whole)


def offer_silenced(result: LensResult, scene: ExplorerScene, model: Model) -> None:
    """Show a button that pins the network as A, and looks at the one without the channels, B.

    It is there only where the lens has switched channels off: other edits are no state of a
    network.
    """
    if result.lens != _LENS or result.chosen["mode"] != _MODE:
        return
    layer = str(result.chosen["layer"])
    mask = ChannelMask(layer, tuple(map(int, result.values["channels"])))
    st.button(
        say("Compare in the explorer"),
        icon=":material/compare:",
        on_click=_compare,
        args=(scene, mask, _watched(result) or layer),
        help=(why := _why_not(scene, mask, model))
        or say("Keep the network as it is as A, and look at the one without these channels, B"),
        key="hv-pin-silenced",
        disabled=bool(why),
    )


def _watched(result: LensResult) -> str:
    """Return the layer that the lens shows last: what comes of the edit, not the edit itself."""
    layers = [panel.layer for panel in result.panels if isinstance(panel, GridPanel)]
    return layers[-1] if layers else ""


def _why_not(scene: ExplorerScene, mask: ChannelMask, model: Model) -> str:
    """Say why there is no such network; empty where there is one."""
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
    pin(scene.shown, scene.choice, ActivationKey(layer), size=scene.size, whole=scene.whole)
    choose(layer=layer)
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
