"""The sidebar: which image, which model, which layer, and how to draw it."""

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.scales import SCALES
from hookviz.drawing.statistics import SORTS
from hookviz.images import reading
from hookviz.models import catalog, timm_models, user_models
from hookviz.settings import settings
from hookviz.types import LayerInfo, Model, ModelSpec, Preprocess
from hookviz.ui.components.gallery import gallery
from hookviz.ui.serving import resources
from hookviz.ui.state import (
    ALL_FAMILIES,
    WEIGHTS,
    ModelChoice,
    Shown,
    View,
    choose,
    choose_sample,
    chosen_sample,
    warn_about_link,
)

_AUTOMATIC = "automatic"
_EVERY = "all"
_SIZES = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)
_TYPES = ("png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "avif")


def pick_image() -> Shown:
    """The image: a sample, an uploaded file or a photograph just taken.

    Raises:
        ImageError: the uploaded file can't be read.
    """
    origin = st.segmented_control(
        "Image",
        ("Samples", "Upload", "Camera"),
        default="Samples",
        required=True,
        width="stretch",
    )
    given: UploadedFile | None = None
    if origin == "Upload":
        given = st.file_uploader(
            "An image file",
            _TYPES,
            max_upload_size=settings().upload_mb,
            label_visibility="collapsed",
        )
    elif origin == "Camera":
        given = st.camera_input("A photograph", label_visibility="collapsed")
    else:
        gallery(chosen_sample().name, choose_sample)
    if given is not None:
        with st.spinner("Reading the image…"):
            image = resources.decode(given.getvalue(), given.name, given.file_id)
        return Shown(image, f"Your image {given.name}")
    sample = chosen_sample()
    return Shown(reading.read(sample.path), sample.alt, sample.path)


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


def pick_input(model: Model) -> tuple[int | None, bool]:
    """Side of the input in pixels, None for the model's own; and whether to show all of it."""
    if not isinstance(model.preprocess, Preprocess):
        return None, False
    own = f"{model.preprocess.crop} px, as trained"
    sizes = {own: None} | {
        f"{size} px": size
        for size in _SIZES
        if model.min_size <= size <= settings().max_input and size != model.preprocess.crop
    }
    with st.expander("Input size and crop"):
        size = st.selectbox("Input size", list(sizes), key="size", bind="query-params")
        whole = st.toggle(
            "Whole image",
            key="whole",
            bind="query-params",
            help="Models are trained on the centre of an image. This shows them all of it.",
        )
    return sizes[size], whole


def pick_layer(layers: Sequence[LayerInfo], every: Sequence[LayerInfo]) -> LayerInfo:
    """One of `layers`, which are in order of execution.

    A layer that is only among `every` layer of the model, because another lens offered those,
    leads to the one of `layers` before it.
    """
    by_name = {layer.name: layer for layer in layers}
    names = [layer.name for layer in every]
    asked = st.session_state.get("layer", st.query_params.get("layer"))
    if asked in names and asked not in by_name:
        before = [name for name in names[: names.index(asked)] if name in by_name]
        choose(layer=before[-1] if before else layers[0].name)
    if asked not in names:
        warn_about_link("layer", list(by_name))
    name = st.selectbox(
        "Layer",
        list(by_name),
        key="layer",
        bind="query-params",
        help="Type to search. P and N step through the layers.",
    )
    return by_name[name]


def pick_view(channels: int) -> View:
    """Scale, colours, order and number of channels."""
    scale = st.selectbox(
        "Scale",
        list(SCALES),
        index=list(SCALES).index("percentile"),
        key="scale",
        bind="query-params",
        help="  \n".join(f"**{name}**: {meaning}" for name, meaning in SCALES.items()),
    )
    colours = st.selectbox("Colours", [_AUTOMATIC, *COLORMAPS], key="colours", bind="query-params")
    sort = st.selectbox("Sort by", list(SORTS), key="sort", bind="query-params")
    counts = [_EVERY, *(str(count) for count in (16, 64, 256) if count < channels)]
    top = st.selectbox("Channels", counts, key="top", bind="query-params")
    return View(
        sort=sort,
        top=None if top == _EVERY else int(top),
        scale=scale,
        colormap=_colormap(scale) if colours == _AUTOMATIC else colours,
    )


def _colormap(scale: str) -> str | None:
    """The automatic choice: signed values fade into the page, be it dark or light."""
    dark = st.context.theme.type == "dark"
    return "berlin" if dark and scale == "symmetric" else None
