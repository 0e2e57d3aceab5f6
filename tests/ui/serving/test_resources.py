"""What sessions share: models, samples, and what a class computes at once."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec
from streamlit.testing.v1 import AppTest
from torch import Tensor

from hookviz.capturing.cache import Budget
from hookviz.explaining.patching.channel_mask import ChannelMask
from hookviz.models import catalog, shapesnet
from hookviz.serving import capacity
from hookviz.serving.time_limit import TimeLimit, TooLongError
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice


def test_a_model_that_loads_too_long_is_not_kept_and_can_be_had_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice = ModelChoice(catalog.find_model("squeezenet1_0"), "random")
    loaded: list[str] = []

    @contextmanager
    def loading() -> Iterator[None]:
        loaded.append("begun")
        yield
        loaded.append("done")

    used = capacity.model_pool().used
    with monkeypatch.context() as late:
        late.setattr(TimeLimit, "from_now", lambda label: TimeLimit(label, 9, 0.0))
        with (
            pytest.raises(TooLongError, match="took longer than the 9 seconds"),
            resources.use_model(choice, loading),
        ):
            pass
    assert capacity.model_pool().used == used
    with (
        resources.use_model(choice, loading) as model,
        resources.use_model(choice, loading) as same,
    ):
        assert same is model  # and it is not loaded again
    assert loaded == ["begun", "begun", "done"]


def test_silent_channels_are_a_model_of_their_own_that_costs_what_is_copied() -> None:
    whole = ModelChoice(catalog.find_model("squeezenet1_0"), "random")
    layer = "features.3.squeeze"
    with resources.use_model(whole) as model:
        used = capacity.model_pool().used
        for channels in ((1,), (1, 2)):
            choice = replace(whole, mask=ChannelMask(layer, channels))
            with resources.use_model(choice) as silent, resources.use_model(choice) as same:
                assert same is silent
                assert silent.digest != model.digest
                weights = silent.network.get_submodule(layer).weight
                assert isinstance(weights, Tensor)
                assert weights.flatten(1).any(1).logical_not().nonzero().flatten().tolist() == list(
                    channels
                )
        conv = model.network.get_submodule(layer)
        copied = sum(each.nbytes for each in conv.parameters())
        assert capacity.model_pool().used == used + 2 * copied


def test_uploaded_weights_are_used_in_a_thread_without_a_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a stream of frames does it; Streamlit would warn of each use of what a session keeps."""
    record = UploadedFileRec(
        "an id", "mine.safetensors", "application/octet-stream", shapesnet.WEIGHTS_FILE.read_bytes()
    )
    choice = ModelChoice(catalog.find_model("shapesnet"), "yours", UploadedFile(record, FileURLs()))

    def use() -> str:
        with resources.use_model(choice) as model:
            return model.weights

    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(1) as pool:
        assert pool.submit(use).result() == "mine.safetensors"
        assert pool.submit(use).result() == "mine.safetensors"
    assert caplog.text == ""


def asks() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs the source alone

    from hookviz.models import catalog  # noqa: PLC0415
    from hookviz.ui.serving import resources  # noqa: PLC0415
    from hookviz.ui.state import ModelChoice  # noqa: PLC0415

    file = st.session_state.get("file")
    choice = ModelChoice(catalog.find_model("shapesnet"), "yours" if file else "random", file)
    st.text(str(resources.sample_cache(choice) is not None))


@pytest.mark.parametrize(
    ("image", "has_file", "is_shared"),
    [
        (None, False, True),
        ("Samples", False, True),
        ("Samples", True, False),
        ("Upload", False, False),
        ("Camera", False, False),
        ("Live", False, False),
    ],
)
def test_nobodys_own_image_or_weights_are_shared(
    image: str | None, has_file: bool, is_shared: bool
) -> None:
    app = AppTest.from_function(asks)
    if image:
        app.session_state["image"] = image
    if has_file:
        record = UploadedFileRec("an id", "mine.safetensors", "", b"")
        app.session_state["file"] = UploadedFile(record, FileURLs())
    assert app.run().text[0].value == str(is_shared)


def asks_in_class() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs the source alone

    from hookviz.ui.serving import resources  # noqa: PLC0415

    st.text(str(resources.class_cache() is not None))


@pytest.mark.parametrize(
    ("link", "image", "shared"),
    [
        ({}, None, False),
        ({"follow": "K7MP3X"}, None, True),
        ({"class": "K7MP3X"}, "Samples", True),
        ({"follow": "K7MP3X"}, "Upload", False),
        ({"class": "K7MP3X"}, "Camera", False),
        ({"class": "K7MP3X"}, "Live", False),
    ],
)
def test_samples_alone_are_shared_and_by_screens_in_a_class(
    link: dict[str, str], image: str | None, shared: bool
) -> None:
    app = AppTest.from_function(asks_in_class)
    for name, value in link.items():
        app.query_params[name] = value
    if image:
        app.session_state["image"] = image
    assert app.run().text[0].value == str(shared)


class Quiet:
    """In the place of the page, which such threads have none of."""

    def empty(self) -> "Quiet":
        return self

    def info(self, *_words: Any, **_looks: Any) -> None:
        pass


def test_of_many_at_once_one_computes_and_the_next_one_where_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resources, "st", Quiet())
    cache = Budget(100).cache(100)
    computed: list[int] = []
    ready = threading.Barrier(12)

    def screen(number: int) -> None:
        ready.wait()
        try:
            with resources.computed_once("grad-cam", cache):
                if cache.get("grad-cam") is None:
                    computed.append(number)
                    if len(computed) < 3:
                        raise RuntimeError("stopped")
                    cache.put("grad-cam", number, 1)
        except RuntimeError:
            pass

    threads = [threading.Thread(target=screen, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 3
    assert cache.get("grad-cam") == computed[-1]
    assert not resources._computed
