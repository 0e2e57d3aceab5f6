"""Get weights: upload the session's own, or download pretrained ones.

While uploaded weights can't be used, the model before stays on the page.
"""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.errors import WeightsError
from hookviz.language.saying import say
from hookviz.models import catalog
from hookviz.models.fetching import downloads
from hookviz.settings import settings
from hookviz.types import ModelSpec
from hookviz.ui.serving import resources
from hookviz.ui.state import ALL_FAMILIES, ModelChoice, choose, plain
from hookviz.ui.streamlit_internals import session_id

# No widget has these keys, so no link can set them.
_LAST = "_last-weights"
_WORKING = "_model-before"
_EVERY_S = 0.5  # between two looks at a download's progress
_MOST_OFFERS = 3  # other models with downloaded weights


def pick_own_weights(spec: ModelSpec) -> ModelChoice:
    """Return the model with uploaded weights, or until they work as it was before.

    Broken weights are refused beside their uploader, and read once.

    Raises:
        ModelError: there is no room for the model.
    """
    checkpoint = st.file_uploader(
        say("Weights for {model}", model=spec.title),
        ("safetensors", "pth", "pt", "bin", "ckpt"),
        max_upload_size=settings().checkpoint_mb,
        help=say(
            "A safetensors file, or a state dict saved by torch.save. Nothing in it is executed."
        ),
    )
    result = st.container()  # between the two uploaders
    labels = st.file_uploader(
        say("Class names, if they are your own"),
        ("txt", "json"),
        max_upload_size=1,
        help=say("A text file with one name a line, or JSON: a list, or numbers and names."),
    )
    st.caption(
        say(
            "A network of your own, and not its weights alone, is opened by whoever starts "
            "HookViz: `hookviz run --model nets:make_net`, or with the `.pt2` file of "
            "`torch.export.save`."
        )
    )
    choice = ModelChoice(spec, "yours", checkpoint, labels)
    if checkpoint is None:
        st.session_state.pop(_LAST, None)
        return _before(choice, result)
    files = spec.name, checkpoint.file_id, labels and labels.file_id
    last, error_text, count = st.session_state.get(_LAST, (None, "", 0))
    if last != files:
        error_text = ""
        try:
            with st.spinner(say("Reading the weights…")), resources.use_model(choice) as model:
                count = len(model.network.state_dict())  # loaded all, or they are refused
        except WeightsError as error:
            error_text = str(error)
        st.session_state[_LAST] = files, error_text, count
    if error_text:
        result.error(plain(error_text), icon=":material/error:")
        return _before(choice, result)
    result.caption(
        plain(
            say(
                "All {count:,} tensors of {model} were loaded from {name}.",
                count=count,
                model=spec.title,
                name=checkpoint.name,
            )
        )
    )
    remember_working(choice)
    return choice


def remember_working(choice: ModelChoice) -> None:
    """Remember the model, for use while the next uploaded weights can't be used."""
    st.session_state[_WORKING] = choice


def model_before() -> ModelChoice | None:
    """Return the last model that worked, and say that it is shown; None without one."""
    before: ModelChoice | None = st.session_state.get(_WORKING)
    if before is not None:
        _describe_before(st, before)
    return before


def weights_instead() -> str:
    """Return the weights in use in place of refused ones; empty if none were refused."""
    _, error_text, _ = st.session_state.get(_LAST, (None, "", 0))
    are_uploaded = st.query_params.get("weights") == "yours"
    return _weights_words(st.session_state[_WORKING]) if error_text and are_uploaded else ""


def _before(choice: ModelChoice, result: DeltaGenerator) -> ModelChoice:
    """Return the last working weights of this architecture, or the choice without weights."""
    before: ModelChoice | None = st.session_state.get(_WORKING)
    if before is None or before.spec.name != choice.spec.name:
        return ModelChoice(choice.spec, "yours")
    _describe_before(result, before)
    return before


def _describe_before(container: Any, before: ModelChoice) -> None:
    words = _weights_words(before)
    container.caption(
        say("Shown until then: {model} with {weights}.", model=before.spec.title, weights=words)
    )


def _weights_words(choice: ModelChoice) -> str:
    if choice.checkpoint is not None:
        return say("your last weights")
    return say("{weights} weights", weights=say(choice.weights))


def wait_for_weights(spec: ModelSpec) -> None:
    """Offer the download of a model's weights, and run the page again once they are here.

    A download starts at a click alone, also after it failed or was cancelled. The rest of the page
    stays in use meanwhile.
    """
    own = _session_downloads()
    if spec.name not in own:
        _offer(spec)
        return
    download = own[spec.name]
    if download is None:
        _offer(spec, say("You cancelled the download."))
    elif download.error is not None:
        _offer(spec, str(download.error))
    else:
        _watch(spec, download)


def may_load(spec: ModelSpec) -> bool:
    """Return whether timm may download a model's weights; show a button until it may."""
    allowed: set[str] = st.session_state.setdefault("_allowed-downloads", set())
    if spec.name in allowed:
        return True
    st.info(
        plain(
            say(
                "timm downloads the weights of {model} unless they are on this machine already.",
                model=spec.title,
            )
        ),
        icon=":material/download:",
    )
    st.button(say("Get the weights"), type="primary", on_click=allowed.add, args=(spec.name,))
    return False


def _session_downloads() -> dict[str, downloads.Download | None]:
    """Return the session's downloads by model; None for a cancelled one."""
    own: dict[str, downloads.Download | None] = st.session_state.setdefault("downloads", {})
    return own


@st.fragment(run_every=_EVERY_S)
def _watch(spec: ModelSpec, download: downloads.Download) -> None:
    if download.finished:
        if download.error is None:
            _session_downloads().pop(spec.name, None)  # a lost file is downloaded again
        st.rerun()
    download.watch(session_id())
    progress = download.progress
    st.progress(
        progress.share or 0.0,
        say(
            "Downloading the weights of {model}: {progress}",
            model=spec.title,
            progress=progress.text,
        ),
    )
    st.caption(
        say("Everybody on this server gets them from this one download. It happens only once.")
    )
    if st.button(say("Cancel"), icon=":material/close:"):
        download.cancel(session_id())
        _session_downloads()[spec.name] = None
        st.rerun()


def _begin(spec: ModelSpec) -> None:
    url, path = catalog.weights_url(spec.name), catalog.weights_path(spec.name)
    _session_downloads()[spec.name] = downloads.start(url, path, who=session_id())


def _offer(spec: ModelSpec, why: str = "") -> None:
    """Offer the download, or show why it ended, with the models and weights that are here."""
    size = say("{megabytes:,.0f} MB", megabytes=spec.download_bytes / 1e6)
    text = say(
        "The pretrained weights of {model} ({size}) are not on this machine. {reason}",
        model=spec.title,
        size=size,
        reason=why,
    )
    if why:
        st.error(plain(text), icon=":material/cloud_off:")
    else:
        st.info(plain(text.strip()), icon=":material/download:")
        st.button(
            say("Download {size}", size=size),
            type="primary",
            icon=":material/download:",
            on_click=_begin,
            args=(spec,),
        )
    st.caption(say("What works now:"))
    with st.container(horizontal=True):
        if why:
            st.button(say("Try again"), icon=":material/refresh:", on_click=_begin, args=(spec,))
        st.button(
            say("{model} with random weights", model=spec.title),
            icon=":material/casino:",
            on_click=choose,
            kwargs={"weights": "random"},
        )
        on_disk = [spec for spec in catalog.described_models() if spec.on_disk]
        for other in on_disk[: 1 + _MOST_OFFERS]:
            st.button(
                other.title,
                icon=":material/grid_view:",
                on_click=choose,
                kwargs={"family": ALL_FAMILIES, "model": other.title, "weights": "pretrained"},
            )
        st.button(
            say("Upload a checkpoint"),
            icon=":material/upload:",
            on_click=choose,
            kwargs={"weights": "yours"},
        )
