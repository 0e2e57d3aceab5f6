import socket
import threading
import urllib.request

import pytest
import torch

import hookviz
from hookviz.errors import HookVizError
from hookviz.models import user_models
from tests.networks import Tiny, seeded


def test_explore_serves_any_number_of_models() -> None:
    with hookviz.explore(seeded(Tiny), name="my net", open_browser=False) as first:
        assert first.url.endswith("/?model=my+net")
        with hookviz.explore(seeded(Tiny), name="another", open_browser=False) as second:
            assert {"my net", "another"} <= set(user_models.models())
            assert second.url.partition("?")[0] == first.url.partition("?")[0]
        with urllib.request.urlopen(first.url, timeout=10) as answer:
            assert b"Streamlit" in answer.read()
        assert "another" not in user_models.models()
    assert "my net" not in user_models.models()


def test_the_app_looks_at_a_copy_that_no_training_changes() -> None:
    network = seeded(Tiny)
    with hookviz.explore(network, open_browser=False) as app:
        before = app.model.digest
        with torch.no_grad():
            network.conv1.weight += 1
        assert app.model.digest == before
        assert app.model.network is not network
    of_catalog = hookviz.load_model("shapesnet")
    with hookviz.explore(of_catalog, open_browser=False) as app:
        assert app.model is of_catalog


def test_a_network_that_cant_be_copied_is_shown_itself_and_a_warning_says_so() -> None:
    network = seeded(Tiny)
    network.lock = threading.Lock()  # type: ignore[assignment]
    said = pytest.warns(UserWarning, match=r"Tiny can't be copied: .* shows the network itself")
    with said, hookviz.explore(network, open_browser=False) as app:
        assert app.model.network is network


def test_what_is_no_module_and_a_port_that_can_not_be_had_are_refused() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        port = busy.getsockname()[1]
        with pytest.raises(HookVizError, match=f"{port}"):
            hookviz.explore(seeded(Tiny), port=port, open_browser=False)
    assert "Tiny" not in user_models.models()
    with pytest.raises(hookviz.ModelError, match="not int"):
        hookviz.explore(3, open_browser=False)  # type: ignore[call-overload]
