"""Show the buttons that pin what is on the screen as A, to hold what is looked at next against."""

import streamlit as st

from hookviz.drawing.panels import GridPanel
from hookviz.errors import HookVizError
from hookviz.explaining.channel_mask import ChannelMask, copied_bytes
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.result import LensResult
from hookviz.types import Address, Model
from hookviz.ui.explorer.channels import Drawing, ExplorerScene
from hookviz.ui.explorer.pinned_view import pin
from hookviz.ui.link import update_link
from hookviz.ui.state import SILENCED, choose

_LENS, _MODE = "ablate", mark("switch off")


def offer_pin(drawing: Drawing, scene: ExplorerScene) -> None:
    """Show a button that pins the drawing as A, as it is when the button is pressed."""
    st.button(
        say("Compare"),
        icon=":material/compare:",
        on_click=_pin,
        args=(drawing, scene),
        help=say("Keep this as A: the image, model or layer that you choose next is B"),
        key="hv-pin",
        disabled=drawing.grid is None,
    )


def _pin(drawing: Drawing, scene: ExplorerScene) -> None:
    if drawing.grid is not None and drawing.grid.address is not None:
        address = drawing.grid.address
        pin(scene.shown, scene.choice, address, size=scene.size, whole=scene.whole)


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
            "{channels} are silent already: bring them back at the left first.",
            channels=before.words,
        )
    try:
        copied_bytes(model, mask)
    except HookVizError as error:
        return str(error)
    return ""


def _compare(scene: ExplorerScene, mask: ChannelMask, layer: str) -> None:
    pin(scene.shown, scene.choice, Address(layer), size=scene.size, whole=scene.whole)
    choose(layer=layer)
    first = next((conv.name for conv in scene.trace.convs), None)
    update_link(
        lens=None,
        layer=None if layer == first else layer,
        after=None,
        channel=None,
        cell=None,
        **{SILENCED: str(mask)},
    )
