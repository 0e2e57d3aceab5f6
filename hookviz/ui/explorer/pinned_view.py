"""Write view A of a comparison into the link, and read its image and network from there."""

from urllib.parse import parse_qsl, urlencode

import streamlit as st

from hookviz.errors import HookVizError, shorten
from hookviz.explaining.patching.channel_mask import ChannelMask, read_channel_mask
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.models import catalog, user_models
from hookviz.types import ActivationKey, ModelSpec
from hookviz.ui.link import update_link
from hookviz.ui.recent_images import find_recent, read_recent
from hookviz.ui.serving import resources
from hookviz.ui.serving.explorer_sessions import PinnedScene
from hookviz.ui.state import WEIGHTS, ImageChoice, ModelChoice, choose

PIN = "a"
"""Link parameter: the pinned view."""

_CHOICE = "_pinned-model"  # a key of session_state that no widget has can't be set from outside
_LONGEST = 1000  # letters of a pinned view in a link


def pin(
    image_choice: ImageChoice,
    choice: ModelChoice,
    step: ActivationKey,
    *,
    size: int | None,
    whole: bool,
) -> None:
    """Pin a view as A; uploaded weights stay with the session."""
    sample = next((each.name for each in samples() if each.path == image_choice.file), None)
    image = {"sample": sample} if sample else {"upload": image_choice.upload}
    file = choice.checkpoint  # identified by Streamlit's name for it
    link = urlencode(
        {
            **image,
            "name": image_title(image_choice),
            "model": choice.spec.title,
            "weights": choice.weights,
            **({} if file is None else {"file": file.file_id}),
            **({} if choice.mask is None else {"silenced": str(choice.mask)}),
            "size": size or "",
            "whole": int(whole),
            "layer": step.layer,
            "step": str(step),
        }
    )
    st.session_state[_CHOICE] = link, choice
    choose(compare="B")
    update_link(**{PIN: link})


def unpin() -> None:
    """End the comparison with A."""
    st.session_state.pop(_CHOICE, None)
    update_link(**{PIN: None}, compare=None)


def pinned_scene() -> PinnedScene | None:
    """Return A from the link, with an error text if image, network or weights are not here.

    Returns:
        None for a link without A.
    """
    link = st.query_params.get(PIN)
    if not link:
        return None
    try:
        parts = _parts(link)
        image_choice, choice = _image(parts), _choice(link, parts)
        with resources.use_model(choice) as model:
            digest = model.digest
            model_input = resources.prepare(
                model,
                image_choice.image,
                size=int(parts["size"]) if parts["size"] else None,
                whole=parts["whole"] == "1",
            )
        title = model_title(parts["model"], parts["weights"], _mask(parts))
    except HookVizError as error:
        return PinnedScene(link, error=str(error))
    return PinnedScene(link, parts["name"], title, parts["step"], choice, digest, model_input)


def image_title(image_choice: ImageChoice) -> str:
    """Return a sample's title, or the name of the image's file."""
    sample = next((each.title for each in samples() if each.path == image_choice.file), None)
    return sample or image_choice.image.name


def model_title(title: str, weights: str, mask: ChannelMask | None = None) -> str:
    """Return a model's title with its weights, unless pretrained, and its silenced channels."""
    suffixes = {"random": say(", random weights"), "yours": say(", your weights")}
    without = "" if mask is None else say(" without {channels}", channels=mask.words)
    return title + suffixes.get(weights, "") + without


def _parts(link: str) -> dict[str, str]:
    """Split a pinned view in a link into its parameters.

    Raises:
        HookVizError: a parameter is missing or malformed.
    """
    parts = dict(parse_qsl(link, keep_blank_values=True)) if len(link) <= _LONGEST else {}
    names = {"name", "model", "weights", "size", "whole", "layer", "step"}
    size = parts.get("size", "")
    number = not size or (size.isascii() and size.isdigit() and len(size) < 5)
    if names <= set(parts) and number:
        return parts
    raise HookVizError(
        say(
            "The view A in this link, {link!r}, names no image, model and layer. Unpin "
            "it, and pin another view.",
            link=shorten(link, 60),
        )
    )


def _image(parts: dict[str, str]) -> ImageChoice:
    sample = next((each for each in samples() if each.name == parts.get("sample")), None)
    if sample is not None:
        data = sample.path.read_bytes()
        return ImageChoice(
            resources.decode(data, sample.path.name, sample.name), say(sample.alt), sample.path
        )
    recent = find_recent(parts.get("upload"))
    if recent is None:
        raise HookVizError(
            say(
                "A is of somebody's own photograph, which no link holds: it stayed in its "
                "own session, or newer images have taken its place. Unpin it, and pin "
                "another view."
            )
        )
    name, title = recent.thumbnail.name, recent.thumbnail.title
    return ImageChoice(read_recent(recent), say("Your image {title}", title=title), upload=name)


def _choice(link: str, parts: dict[str, str]) -> ModelChoice:
    """Return the model of A: the one that this session pinned, or the one in the link."""
    pinned, choice = st.session_state.get(_CHOICE, ("", None))
    if pinned == link and isinstance(choice, ModelChoice):
        return choice
    title, weights = parts["model"], parts["weights"]
    own = next((each for each in user_models.specs() if each.title == title), None)
    if own is not None:
        return ModelChoice(own, "own", mask=_mask(parts))
    spec = _spec(title)
    if weights not in WEIGHTS or weights == "yours":
        raise HookVizError(
            say(
                "A is {title} with somebody's own weights, which no link holds. Unpin it, "
                "choose those weights in the sidebar, and pin it again.",
                title=title,
            )
        )
    if weights == "pretrained" and not spec.on_disk:
        raise HookVizError(
            say(
                "A is {title}, whose weights are not on this machine yet. Unpin it, choose "
                "that model in the sidebar, which offers to load them, and pin it again.",
                title=title,
            )
        )
    return ModelChoice(spec, weights, mask=_mask(parts))


def _mask(parts: dict[str, str]) -> ChannelMask | None:
    """Return the silenced channels of A.

    Raises:
        SettingError: the link names no channels of a layer.
    """
    return read_channel_mask(parts["silenced"]) if parts.get("silenced") else None


def _spec(title: str) -> ModelSpec:
    """Find the model of that title in the catalog.

    Raises:
        HookVizError: there is none.
    """
    spec = next((each for each in catalog.list_models() if each.title == title), None)
    if spec is None:
        raise HookVizError(
            say(
                "A is of the model {title!r}, which is not here. Unpin it, and pin a view of "
                "a model in the sidebar's list.",
                title=shorten(title, 60),
            )
        )
    return spec
