from urllib.parse import parse_qs

from streamlit.testing.v1 import AppTest

PIN_TWICE = """
from types import SimpleNamespace

import streamlit as st

from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.models import catalog
from hookviz.types import Address
from hookviz.ui.explorer.pinned_view import PIN, pin, pinned_view
from hookviz.ui.state import ModelChoice, Shown

sample = samples()[0]
shown = Shown(reading.read(sample.path), sample.alt, sample.path)
links = []
for number in (1, 2):
    file = SimpleNamespace(file_id=f"file {number}")
    choice = ModelChoice(catalog.described_models()[0], "yours", file)
    pin(shown, choice, Address("conv", 1, ("mask",)), size=96, whole=True)
    links.append(st.query_params[PIN])
    view = pinned_view()
    assert view is not None
    st.text(f"{view.image} | {view.title} | {view.step}")
st.session_state["links"] = links
"""


SILENT = PIN_TWICE.replace(
    '"yours", file)', '"random", silence=Silence("conv", (number,)))'
).replace(
    "import reading", "import reading\nfrom hookviz.explaining.silenced_network import Silence"
)


def test_a_network_with_silent_channels_is_a_view_of_its_own() -> None:
    app = AppTest.from_string(SILENT).run(timeout=30)
    assert not app.exception
    assert [parse_qs(link)["silenced"] for link in app.session_state["links"]] == [
        ["conv:1"],
        ["conv:2"],
    ]
    assert ", random weights without 1 channel of conv | " in app.text[0].value


def test_two_files_of_weights_are_two_views() -> None:
    app = AppTest.from_string(PIN_TWICE).run(timeout=30)
    assert not app.exception
    one, other = app.session_state["links"]
    assert one != other
    parts = parse_qs(one)
    assert (parts["layer"], parts["step"]) == (["conv"], ["conv#1[mask]"])
    assert (parts["size"], parts["whole"], parts["sample"]) == (["96"], ["1"], ["cat"])
    assert app.text[0].value.endswith(", your weights | conv#1[mask]")
    assert app.text[0].value.startswith("Cat | ")
