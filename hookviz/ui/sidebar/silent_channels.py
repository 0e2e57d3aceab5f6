"""Silence the channels that the link names, and offer to bring them back."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import streamlit as st

from hookviz.errors import SettingError, UnknownLayerError
from hookviz.explaining.patching.channel_mask import read_channel_mask
from hookviz.language.saying import say
from hookviz.ui.link import update_link
from hookviz.ui.serving import resources
from hookviz.ui.state import SILENCED, ModelChoice, plain
from hookviz.wording import numbers_listed


def keep_silent(
    choice: ModelChoice, while_loading: Callable[[], AbstractContextManager[None]]
) -> ModelChoice:
    """Return the model with the channels silent that the link names, and say which.

    Of a link that names no channels of this model a warning says so, once, and it is left aside.

    Raises:
        ModelError: there is no room for the model.
    """
    asked = st.query_params.get(SILENCED)
    if not asked:
        return choice
    try:
        mask = read_channel_mask(asked)
        silent = replace(choice, mask=mask)
        with resources.use_model(silent, while_loading):
            pass  # it stays in memory for the page
    except (SettingError, UnknownLayerError) as error:
        st.warning(
            plain(say("No channel is silenced: {error}", error=error)), icon=":material/link_off:"
        )
        update_link(**{SILENCED: None})
        return choice
    listed = numbers_listed(mask.channels).replace(",", ", ")
    st.caption(
        plain(
            say(
                "Silent: {silence} ({channels})",
                silence=mask.words,
                channels=listed if len(listed) < 60 else "…",
            )
        )
    )
    st.button(
        say("Bring it back") if len(mask.channels) == 1 else say("Bring them back"),
        icon=":material/volume_up:",
        on_click=_bring_back,
        help=say("Look at the network with all its channels"),
        key="hv-bring-back",
    )
    return silent


def _bring_back() -> None:
    update_link(**{SILENCED: None})
