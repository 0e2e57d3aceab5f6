"""Take weights of one's own with class names; where they are broken, the model before stays."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
        return _before(choice, said)
    files = spec.name, checkpoint.file_id, labels and labels.file_id
    last, complaint, count = st.session_state.get(_LAST, (None, "", 0))
    if last != files:
        complaint = ""
        try:
            with st.spinner(say("Reading the weights…")), resources.use_model(choice) as model:
                count = len(model.network.state_dict())  # all of them, or they are refused
        except WeightsError as error:
            complaint = str(error)
        st.session_state[_LAST] = files, complaint, count
    if complaint:
        said.error(plain(complaint), icon=":material/error:")
        return _before(choice, said)
    said.caption(
        plain(
            say(
                "All {count:,} tensors of {model} were loaded from {name}.",
                count=count,
                model=spec.title,
                name=checkpoint.name,
            )
        )
    )
    remember_shown(choice)
    return choice


def remember_shown(choice: ModelChoice) -> None:
    """Keep what is shown now, to go on with where weights that come next are broken."""
    st.session_state[_BEFORE] = choice


def shown_instead() -> str:
    """Return which weights are shown in place of refused ones; empty where none were refused."""
    _, complaint, _ = st.session_state.get(_LAST, (None, "", 0))
    is_of_own = st.query_params.get("weights") == "yours"
    return _in_words(st.session_state[_BEFORE]) if complaint and is_of_own else ""


def _before(choice: ModelChoice, said: DeltaGenerator) -> ModelChoice:
    """Return what was shown of this architecture before, and say so; else the bare choice."""
    before: ModelChoice | None = st.session_state.get(_BEFORE)
    if before is None or before.spec.name != choice.spec.name:
        return ModelChoice(choice.spec, "yours")
    said.caption(
        say(
            "Shown until then: {model} with {weights}.",
            model=choice.spec.title,
            weights=_in_words(before),
        )
    )
    return before


def _in_words(choice: ModelChoice) -> str:
    """Return what to call the weights that are shown in place of others."""
    if choice.checkpoint is not None:
        return say("your last weights")
    return say("{weights} weights", weights=say(choice.weights))
