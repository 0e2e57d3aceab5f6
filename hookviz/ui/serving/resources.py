"""Keep what outlives one run of the page: loaded models, and a session's images and inputs.

What the screens of a class compute alike is computed once. Forty who follow ask for the same lens
of the same sample at the same moment: one of them computes it, and the others wait for that and
find it here. What is in here is known by the digests of network and input, so it is what each of
them would have computed. Nobody's own photograph comes in, and nothing is left of it when the last
class has ended.
"""

import hashlib
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.capturing import inputs
from hookviz.capturing.cache import ByteCache
from hookviz.classroom.classes import class_activations
from hookviz.explaining.patching.channel_mask import copied_bytes, mask_channels
from hookviz.hooking.network_state import unchanged
from hookviz.images import reading
from hookviz.images.choices import Choices
from hookviz.images.samples import Sample
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.models import loading, user_models
from hookviz.models.checkpoints.guards import MOST_DESCRIPTION
from hookviz.reader import wall
from hookviz.serving import capacity
from hookviz.serving.device import serving_device
from hookviz.serving.memory_reservations import MemoryNeed, loading_need
from hookviz.serving.time_limit import TimeLimit
from hookviz.settings import settings
from hookviz.types import InputImage, Model, ModelInput
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import ModelChoice, shows_sample

IMAGE_TYPES = (
    *("png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "avif"),
    *("heic", "heif", "dcm", "jp2", "jxl", "svg", "psd"),
)
"""How the names of files end that `decode` reads, or refuses in a sentence of its own."""

_FLOAT_BYTES = 4
_MOST_DIGESTS = 1000  # of uploaded files, by Streamlit's names for them, that nobody can guess

_digests: dict[str, str] = {}
_IN_A_CLASS = {"follow", "class"}  # names of the link
_TICK = 0.5  # seconds between two calls of Streamlit's while waiting, at which a click ends it

_done = threading.Condition()
_computed: set[Hashable] = set()  # what one screen of a class computes now


@contextmanager
def use_model(
    choice: ModelChoice,
    while_loading: Callable[[], AbstractContextManager[None]] = nullcontext,
    on_wait: Callable[[], object] = lambda: None,
) -> Iterator[Model]:
    """Hold the chosen model for the block; everybody who chose the same shares it.

    Args:
        choice: the model.
        while_loading: a block for the time of loading, where it is not loaded yet.
        on_wait: called before a wait for others, who load the same or leave no room, and during
            one for memory; what it raises ends that.

    Raises:
        ModelError: it does not fit into the memory for models.
        OutOfMemoryError: it does not fit into what memory there is.
        TooLongError: loading it takes longer than a run may.
        WeightsError: its weights can't be read, or don't fit.
        UnknownLayerError: it has no layer of that name to mask.
        SettingError: the layer has no such channels, or they can't be silenced.
    """
    with _use_whole(choice, while_loading, on_wait) as (key, whole):
        model = whole
        if choice.output:  # the part that answers stays the one that the network's owner named
            said = replace(whole.output, kind=choice.output, is_said=True)
            model = replace(whole, output=said)
        mask = choice.mask
        if mask is None:
            with unchanged(model.network):  # at which each question about it would look again
                yield model
            return
        title = say("{model} without {channels}", model=model.title, channels=mask.words)
        mask_it = partial(mask_channels, model, mask)
        silent = capacity.model_pool().use(
            ("silenced", *key, model.digest, str(mask)),
            title,
            copied_bytes(model, mask),
            lambda: _load_masked(title, mask_it, while_loading),
            on_wait,
        )
        with silent as silenced_model, unchanged(silenced_model.network):
            yield silenced_model


def _load_masked(
    title: str,
    mask_it: Callable[[], Model],
    while_loading: Callable[[], AbstractContextManager[None]],
) -> Model:
    with while_loading():
        return capacity.with_retry(say("Loading {title}", title=title), mask_it)


@contextmanager
def _use_whole(
    choice: ModelChoice,
    while_loading: Callable[[], AbstractContextManager[None]],
    on_wait: Callable[[], object],
) -> Iterator[tuple[tuple[str, ...], Model]]:
    """Hold the chosen model with all its channels; yields its key in the pool, and the model."""
    spec = choice.spec
    own_model = user_models.models().get(spec.name) if spec.family == user_models.FAMILY else None
    if own_model is not None:
        yield (spec.name, "own"), own_model
        return
    key: tuple[str, ...] = (spec.name, choice.weights)
    weights = "pretrained" if user_models.is_own(spec) else choice.weights
    load = partial(loading.load_model, spec.name, weights, device=serving_device())
    if choice.checkpoint is not None:
        labels = choice.labels.getvalue() if choice.labels is not None else None
        key = (spec.name, _digest(choice.checkpoint), hashlib.sha256(labels or b"").hexdigest())
        load = partial(_load_checkpoint, choice.checkpoint, spec.name, labels)

    label = say("Loading {model}", model=spec.title)
    # A checkpoint may unpack to twice its bytes, whatever network it is said to be of.
    in_file = choice.checkpoint.size // 2 if choice.checkpoint is not None else 0
    need = loading_need(
        max(spec.parameters, in_file),
        random=choice.weights == "random",
        reader=wall.memory_for_text(min(2 * in_file, MOST_DESCRIPTION)) if in_file else 0,
    )

    def wait(_position: int) -> None:
        on_wait()

    def load_in_time() -> Model:
        with (
            while_loading(),
            capacity.reservations().hold(label, need, wait),
            TimeLimit.from_now(label).over_torch(),
        ):
            return capacity.with_retry(label, load)

    size = spec.parameters * _FLOAT_BYTES
    with capacity.model_pool().use(key, spec.title, size, load_in_time, on_wait) as model:
        yield key, model


def _load_checkpoint(file: UploadedFile, architecture: str, labels: bytes | None) -> Model:
    return loading.load_checkpoint(
        architecture, file.getvalue(), file.name, labels=labels, device=serving_device()
    )


def _digest(file: UploadedFile) -> str:
    """Return the SHA-256 of an uploaded file, which is read once and not at every click.

    Not kept with the session, whose stream of frames uses the model in a thread that has none.
    """
    digest = _digests.get(file.file_id)
    if digest is None:
        digest = _digests[file.file_id] = hashlib.sha256(file.getbuffer()).hexdigest()
        while len(_digests) > _MOST_DIGESTS:
            _digests.pop(next(iter(_digests)), None)
    return digest


@st.cache_resource(scope="session", on_release=ByteCache.clear, show_spinner=False)
def session_cache() -> ByteCache:
    """Return the session's cache of activations; its bytes come back when the session ends."""
    return capacity.activation_budget().cache(settings().session_mb * MEGABYTE)


def sample_cache(choice: ModelChoice) -> ByteCache | None:
    """Return what everybody shares of a sample; None where the image or the weights are one's own.

    A hundred who come within seconds look at the same sample, and one pass is enough for them.
    """
    is_shared = shows_sample() and choice.checkpoint is None
    return capacity.sample_activations() if is_shared else None


def prepare(model: Model, image: InputImage, *, size: int | None, whole: bool) -> ModelInput:
    """Return the network's input for an image, from the session's cache where it is there.

    Raises:
        HookVizError: the image can't be brought to that size.
    """
    cache = session_cache()
    key = ("input", model.name, model.digest, image.digest, size, whole)
    model_input: ModelInput | None = cache.get(key)
    if model_input is None:
        model_input = inputs.prepare_input(model, image, size=size, whole=whole)
        picture_bytes = 0 if model_input.picture is None else model_input.picture.nbytes
        cache.put(key, model_input, model_input.tensor.nbytes + picture_bytes)
    return model_input


def decode(data: bytes, name: str, key: str, page: int | None = None) -> InputImage:
    """Decode the image in an uploaded file once per session, a large one in a turn of its own.

    A class that uploads at once would otherwise decode at once, hundreds of megabytes each.

    Raises:
        ImageError: it can't be read.
    """
    image: InputImage | None = session_cache().get(("image", key, page))
    if image is None:
        choices = Choices(page=page)
        first = reading.decode_small(data, name, choices)
        if isinstance(first, InputImage):
            image = first
        else:
            need = MemoryNeed(
                first.memory, first.memory, lambda _room: say("Give a smaller image.")
            )
            with turn(say("Reading the image"), "decode", need=need) as slot:
                image = reading.decode(data, name, head=first, choices=choices)
                slot.limit.check()  # inside it nothing can be ended; its pixels are bounded
        session_cache().put(("image", key, page), image, image.pixels.nbytes)
    return image


def decode_sample(sample: Sample) -> InputImage:
    """Decode a picture that ships with HookViz, once per session."""
    return decode(sample.path.read_bytes(), sample.title, sample.name)


def class_cache() -> ByteCache | None:
    """Return the cache of all classes; None outside of a class, or for an image of one's own."""
    in_class = bool(_IN_A_CLASS & set(st.query_params))
    return class_activations() if in_class and shows_sample() else None


@contextmanager
def computed_once(key: Hashable, of_class: ByteCache | None) -> Iterator[None]:
    """Wait until no other screen of a class computes this, and be the one that does for the block.

    Whoever has waited looks into the cache first. It waits with Streamlit's own calls, so a click
    or a closed tab ends the wait; and where the one that computes is stopped, the next one begins.
    """
    if of_class is None:
        yield
        return
    line = st.empty()
    while not _begins(key):
        line.info(
            say("This is computed once for the class, and is here in a moment."),
            icon=":material/hourglass_top:",
        )
        with _done:
            _done.wait_for(lambda: key not in _computed, _TICK)
    line.empty()
    try:
        yield
    finally:
        with _done:
            _computed.discard(key)
            _done.notify_all()


def _begins(key: Hashable) -> bool:
    with _done:
        if key in _computed:
            return False
        _computed.add(key)
        return True
