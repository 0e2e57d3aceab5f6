"""The first use of pretrained weights: a download with progress, and what works without it."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from hookviz.models import catalog
from hookviz.models.fetching import downloads
from hookviz.types import ModelSpec
from hookviz.ui.state import ALL_FAMILIES, choose, plain

_LOOK = 0.5  # seconds between two looks at how far a download is
_MOST_OFFERS = 3  # other models whose weights are here


def wait_for_weights(spec: ModelSpec) -> None:
    """Show how far the download of a model's weights is; once they are here, draw the page again.

    The rest of the page stays in use meanwhile. A download that failed or was cancelled is not
    begun again until somebody asks for it.
    """
    own = _session_downloads()
    if spec.name not in own:
        url, path = catalog.weights_url(spec.name), catalog.weights_path(spec.name)
        own[spec.name] = downloads.start(url, path, who=_session_id())
    download = own[spec.name]
    if download is None:
        _offer(spec, "You cancelled the download.")
    elif download.error is not None:
        _offer(spec, str(download.error))
    else:
        _watch(spec, download)


def _session_downloads() -> dict[str, downloads.Download | None]:
    """The session's downloads by model; None for one that was cancelled here."""
    own: dict[str, downloads.Download | None] = st.session_state.setdefault("downloads", {})
    return own


def _session_id() -> str | None:
    """Who waits for a download, for `downloads`."""
    context = get_script_run_ctx()
    return context.session_id if context else None


@st.fragment(run_every=_LOOK)
def _watch(spec: ModelSpec, download: downloads.Download) -> None:
    if download.finished:
        if download.error is None:
            _forget(spec.name)  # should the file vanish again, it is downloaded again
        st.rerun()
    download.watch(_session_id())
    progress = download.progress
    st.progress(progress.share or 0.0, f"Downloading the weights of {spec.title}: {progress.text}")
    st.caption("Everybody on this server gets them from this one download. It happens only once.")
    if st.button("Cancel", icon=":material/close:"):
        download.cancel(_session_id())
        _session_downloads()[spec.name] = None
        st.rerun()


def _offer(spec: ModelSpec, why: str) -> None:
    """Why the weights are not here, and in one click what works now."""
    st.error(
        plain(
            f"The pretrained weights of {spec.title} ({spec.download_bytes / 1e6:.0f} MB) are not "
            f"on this machine. {why}"
        ),
        icon=":material/cloud_off:",
    )
    st.caption("What works now:")
    with st.container(horizontal=True):
        st.button("Try again", icon=":material/refresh:", on_click=_forget, args=(spec.name,))
        st.button(
            f"{spec.title} with random weights",
            icon=":material/casino:",
            on_click=choose,
            kwargs={"weights": "random"},
        )
        for other in _on_disk():
            st.button(
                other.title,
                icon=":material/grid_view:",
                on_click=choose,
                kwargs={"family": ALL_FAMILIES, "model": other.title, "weights": "pretrained"},
            )
        st.button(
            "Upload a checkpoint",
            icon=":material/upload:",
            on_click=choose,
            kwargs={"weights": "yours"},
        )


def _forget(name: str) -> None:
    _session_downloads().pop(name, None)


def _on_disk() -> list[ModelSpec]:
    return [spec for spec in catalog.described_models() if spec.on_disk][: 1 + _MOST_OFFERS]
