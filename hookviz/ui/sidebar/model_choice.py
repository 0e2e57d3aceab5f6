"""Choose the model, the source of its weights, and silenced channels."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.errors import SettingError, UnknownLayerError
from hookviz.explaining.patching.channel_mask import read_channel_mask
from hookviz.language.saying import localised, say
from hookviz.models import catalog, user_models
from hookviz.models.catalog import find_source, source_of
from hookviz.outputs.answer import KINDS
from hookviz.types import ModelSpec
from hookviz.ui.link import update_link
from hookviz.ui.serving import resources
from hookviz.ui.sidebar.weights import pick_own_weights, remember_working
from hookviz.ui.state import (
    ALL_FAMILIES,
    ON_DISK,
    SILENCED,
    WEIGHTS,
    ModelChoice,
    linked_choice,
    plain,
    warn_about_link,
)
from hookviz.wording import numbers_listed


def pick_model(settings: DeltaGenerator) -> ModelChoice:
    """Show the choice of a model; return the chosen one.

    Args:
        settings: gets the choices of the family and of the weights.
    """
    specs = [*user_models.specs(), *_catalog()]
    families = [ALL_FAMILIES, ON_DISK, *dict.fromkeys(spec.family for spec in specs)]
    titles_by_name = {spec.name: spec.title for spec in specs}
    chosen = st.query_params.get("model", "")
    title = titles_by_name.get(chosen.lower())
    if title and chosen not in titles_by_name.values():  # its name in Python
        update_link(model=title)
        chosen = title

    def keep_model(family: str | None) -> dict[str, str | None]:
        """Keep the chosen model if it belongs to the family."""
        title = st.session_state["model"]
        stays = any(spec.title == title and _belongs(spec, family or "", title) for spec in specs)
        return {"model": title if stays else None}

    with settings:
        family = linked_choice(
            st.selectbox, say("Family"), families, "family", first=families[0], also=keep_model
        )
    family = family or families[0]
    listed = {spec.title: spec for spec in specs if _belongs(spec, family, chosen)}
    warn_about_link("model", [spec.title for spec in specs])
    titles = sorted(listed, key=lambda title: not listed[title].on_disk)
    first = catalog.first_model().title
    if family != ALL_FAMILIES or user_models.models():
        first = next(iter(listed))
    title = linked_choice(
        st.selectbox,
        say("Model"),
        {title: title for title in titles},
        "model",
        # not the first downloaded one: a link without a model opens the same model everywhere
        first=first,
        icon=_icon(listed[chosen] if chosen in listed else listed[titles[0]]),
    )
    spec = listed[title or first]
    if user_models.is_own(spec):
        st.caption(_about_own(spec))
        return ModelChoice(spec, "own", output=_pick_output())
    with settings:
        weights = linked_choice(
            st.segmented_control,
            say("Weights"),
            {name: say("your weights") if name == "yours" else say(name) for name in WEIGHTS},
            "weights",
            first="pretrained",
            required=True,
            width="stretch",
            wrap=False,
        )
    st.caption(_about(spec, weights or "pretrained"))
    if weights == "yours":
        return replace(pick_own_weights(spec), output=_pick_output())
    choice = ModelChoice(spec, weights or "pretrained")
    if choice.weights == "random" or spec.on_disk:
        remember_working(choice)
    return choice


def _pick_output() -> str:
    """Show the choice of an unknown network's kind of output, and return it."""
    kinds = {"": say("as the network says, or scores")} | {
        kind: say(words) for kind, words in KINDS.items()
    }
    chosen = linked_choice(
        st.selectbox,
        say("Its output"),
        kinds,
        "means",
        first="",
        help=say("What the numbers are that it puts out: where nobody says so they have no %."),
    )
    return chosen or ""


def _catalog() -> tuple[ModelSpec, ...]:
    """Return the catalog, without timm's models until timm is imported, unless the link has one."""
    return catalog.models_at_once(*(st.query_params.get(name, "") for name in ("family", "model")))


def _belongs(spec: ModelSpec, family: str, chosen: str | None) -> bool:
    """Return whether to list a model; timm's thousand only under their own families."""
    if family == ON_DISK:
        return spec.on_disk or spec.title == chosen  # a link can come from another machine
    if family == ALL_FAMILIES:
        source = find_source(spec.name)
        return source is None or source.is_described
    return family == spec.family


def _about_own(spec: ModelSpec) -> str:
    if spec.family == user_models.FAMILY:
        return say(
            "{millions} parameters · as it was when HookViz was started", millions=_millions(spec)
        )
    return say(
        "{millions} parameters · from this machine's Hugging Face cache", millions=_millions(spec)
    )


def _about(spec: ModelSpec, weights: str) -> str:
    if about := source_of(spec.name).about:
        return say(about)
    if weights == "yours":
        return say("{millions} parameters · with weights of your own", millions=_millions(spec))
    if weights == "random":
        return say(
            "{millions} parameters · never trained, so look at the architecture alone",
            millions=_millions(spec),
        )
    where = (
        say("on this machine")
        if spec.on_disk
        else say("{megabytes:,.0f} MB download", megabytes=spec.download_bytes / 1e6)
    )
    quality = say(
        "{accuracy:.1f} % {metric} on {trained_on}",
        accuracy=spec.accuracy,
        metric=say(spec.metric),
        trained_on=say(spec.trained_on),
    )
    return say(
        "{icon} {availability} · {millions} parameters · {quality}",
        icon=_icon(spec),
        availability=where,
        millions=_millions(spec),
        quality=quality,
    )


def _icon(spec: ModelSpec) -> str:
    """Return the icon of downloaded weights, or of weights to download."""
    return ":material/download_done:" if spec.on_disk else ":material/cloud_download:"


def _millions(spec: ModelSpec) -> str:
    if spec.parameters >= 1e6:
        return localised(f"{spec.parameters / 1e6:,.1f} M")
    return f"{spec.parameters / 1e3:.0f} k"


def silence_channels(
    choice: ModelChoice, while_loading: Callable[[], AbstractContextManager[None]]
) -> ModelChoice:
    """Return the model with the link's channels silenced, and list them on the page.

    A link with no channels of this model is warned of once and ignored.

    Args:
        choice: the model.
        while_loading: shows that the model is loaded.

    Raises:
        ModelError: there is no room for the model.
    """
    in_link = st.query_params.get(SILENCED)
    if not in_link:
        return choice
    try:
        mask = read_channel_mask(in_link)
        silent = replace(choice, mask=mask)
        with resources.use_model(silent, while_loading):
            pass  # the page finds it in memory
    except (SettingError, UnknownLayerError) as error:
        st.warning(
            plain(say("No channel is silenced: {error}", error=error)), icon=":material/link_off:"
        )
        update_link(**{SILENCED: None})
        return choice
    numbers = numbers_listed(mask.channels).replace(",", ", ")
    numbers = numbers if len(numbers) < 60 else "…"
    st.caption(plain(say("Silent: {silence} ({channels})", silence=mask.words, channels=numbers)))
    st.button(
        say("Bring it back") if len(mask.channels) == 1 else say("Bring them back"),
        icon=":material/volume_up:",
        on_click=update_link,
        kwargs={SILENCED: None},
        help=say("Look at the network with all its channels"),
        key="hv-bring-back",
    )
    return silent
