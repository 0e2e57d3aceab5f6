import threading
from collections.abc import Iterator
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
from hookviz.models import catalog
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


def asks() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs the source alone

    from hookviz.models import catalog  # noqa: PLC0415
    from hookviz.ui.serving import resources  # noqa: PLC0415
    from hookviz.ui.state import ModelChoice  # noqa: PLC0415

    file = st.session_state.get("file")
    choice = ModelChoice(catalog.find_model("shapesnet"), "yours" if file else "random", file)
    st.text(f"{resources.sample_cache(choice) is not None}")
    st.text(f"{resources.class_cache() is not None}")


OWN_WEIGHTS = UploadedFile(UploadedFileRec("an id", "mine.safetensors", "", b""), FileURLs())


@pytest.mark.parametrize(
    ("link", "state", "by_all", "in_class"),
    [
        ({}, {}, True, False),
        ({"follow": "K7MP3X"}, {}, True, True),
        ({"class": "K7MP3X"}, {"image": "Samples"}, True, True),
        ({}, {"image": "Samples", "file": OWN_WEIGHTS}, False, False),
        ({"follow": "K7MP3X"}, {"image": "Upload"}, False, False),
        ({"class": "K7MP3X"}, {"image": "Camera"}, False, False),
        ({"class": "K7MP3X"}, {"image": "Live"}, False, False),
    ],
)
def test_samples_alone_are_shared_by_all_and_by_screens_in_a_class(
    link: dict[str, str], state: dict[str, Any], by_all: bool, in_class: bool
) -> None:
    app = AppTest.from_function(asks)
    app.query_params.update(link)
    for name, value in state.items():
        app.session_state[name] = value
    assert [each.value for each in app.run().text] == [str(by_all), str(in_class)]


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
