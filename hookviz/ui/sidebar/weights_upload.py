"""Take weights of one's own with class names; where they are broken, the model before stays."""

import streamlit as st

from hookviz.errors import WeightsError
from hookviz.language.saying import say
from hookviz.settings import settings
from hookviz.types import ModelSpec
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice, plain

# Keys of session_state that no widget has can't be set from outside.
_LAST = "_last-weights"
_BEFORE = "_model-before"


def pick_own_weights(spec: ModelSpec) -> ModelChoice:
    """Return the model with uploaded weights; until they work, as it was shown before.

    What can't be read is refused where it was given, and looked at once.

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
    said = st.container()  # between the two, and so beside either
    labels = st.file_uploader(
        say("Class names, if they are your own"),
        ("txt", "json"),
        max_upload_size=1,
        help=say("A text file with one name a line, or JSON: a list, or numbers and names."),
    )
    choice = ModelChoice(spec, "yours", checkpoint, labels)
    if checkpoint is None:
        return _before(choice)
    files = spec.name, checkpoint.file_id, labels and labels.file_id
    last, complaint = st.session_state.get(_LAST, (None, ""))
    if last != files:
        complaint = ""
        try:
            with st.spinner(say("Reading the weights…")), resources.use_model(choice):
                pass  # it stays in memory for the page
        except WeightsError as error:
            complaint = str(error)
        st.session_state[_LAST] = files, complaint
    if complaint:
        said.error(plain(complaint), icon=":material/error:")
        return _before(choice)
    remember_shown(choice)
    return choice


def remember_shown(choice: ModelChoice) -> None:
    """Keep what is shown now, to go on with where weights that come next are broken."""
    st.session_state[_BEFORE] = choice


def _before(choice: ModelChoice) -> ModelChoice:
    """Return what was shown of this architecture before; else the choice without its files."""
    before: ModelChoice | None = st.session_state.get(_BEFORE)
    if before is None or before.spec.name != choice.spec.name:
        return ModelChoice(choice.spec, "yours")
    weights = (
        say("your last weights")
        if before.checkpoint is not None
        else say("{weights} weights", weights=before.weights)
    )
    st.caption(
        say("Shown until then: {model} with {weights}.", model=choice.spec.title, weights=weights)
    )
    return before
