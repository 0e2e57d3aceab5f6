"""Which model is looked at, and where its weights come from."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.models import catalog, timm_models, user_models
from hookviz.settings import settings
from hookviz.types import ModelSpec
from hookviz.ui.state import ALL_FAMILIES, WEIGHTS, ModelChoice, warn_about_link


def pick_model() -> ModelChoice:
    """A model by family and name, and where its weights come from."""
    specs = [*map(user_models.spec, user_models.models().values()), *catalog.list_models()]
    families = [ALL_FAMILIES, *dict.fromkeys(spec.family for spec in specs)]
    family = st.selectbox("Model", families, key="family", bind="query-params")
    listed = {spec.title: spec for spec in specs if _belongs(spec, family)}
    warn_about_link("model", [spec.title for spec in specs])
    title = st.selectbox(
        "Model of this family",
        list(listed),
        key="model",
        bind="query-params",
        label_visibility="collapsed",
    )
    spec = listed[title]
    if spec.family == user_models.FAMILY:
        st.caption(f"{_millions(spec)} parameters · as it was when HookViz was started")
        return ModelChoice(spec, "own")
    weights = st.segmented_control(
        "Weights",
        WEIGHTS,
        default="pretrained",
        required=True,
        key="weights",
        bind="query-params",
        label_visibility="collapsed",
        width="stretch",
        wrap=False,
    )
    st.caption(_about(spec, weights or "pretrained"))
    if weights == "yours":
        return ModelChoice(spec, weights, *_pick_files(spec))
    return ModelChoice(spec, weights or "pretrained")


def _belongs(spec: ModelSpec, family: str) -> bool:
    """Whether to offer a model; timm's thousand only under their own families."""
    if family == ALL_FAMILIES:
        return not spec.name.startswith(timm_models.PREFIX)
    return family == spec.family


def _pick_files(spec: ModelSpec) -> tuple[UploadedFile | None, UploadedFile | None]:
    """Uploaded weights and class names."""
    checkpoint = st.file_uploader(
        f"Weights for {spec.title}",
        ("safetensors", "pth", "pt", "bin", "ckpt"),
        max_upload_size=settings().checkpoint_mb,
        help="A safetensors file, or a state dict saved by torch.save. Nothing in it is executed.",
    )
    labels = st.file_uploader(
        "Class names, if they are your own",
        ("txt", "json"),
        max_upload_size=1,
        help="A text file with one name a line, or JSON: a list, or numbers and names.",
    )
    return checkpoint, labels


def _about(spec: ModelSpec, weights: str) -> str:
    if spec.name.startswith(timm_models.PREFIX):
        return "from timm, with its own preprocessing"
    if weights == "yours":
        return f"{_millions(spec)} parameters · with weights of your own"
    if weights == "random":
        return f"{_millions(spec)} parameters · never trained, so look at the architecture alone"
    where = (
        "on this machine" if spec.on_disk else f"{spec.download_bytes / 1e6:,.0f} MB to download"
    )
    quality = f"{spec.accuracy:.1f} % top-1 on {spec.trained_on}"
    return f"{_millions(spec)} parameters · {quality} · {where}"


def _millions(spec: ModelSpec) -> str:
    if spec.parameters >= 1e6:
        return f"{spec.parameters / 1e6:,.1f} M"
    return f"{spec.parameters / 1e3:.0f} k"
