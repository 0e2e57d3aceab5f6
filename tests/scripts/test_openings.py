"""The channels on which the page opens, against the network that they are of."""

import json

import hookviz
from hookviz.settings import ASSETS
from scripts.openings import PARTS, openings


def test_the_file_has_what_the_script_chooses_of_the_network_today() -> None:
    model = hookviz.load_model("squeezenet")
    chosen = openings(model)
    assert json.loads((ASSETS / "openings.json").read_text("utf-8")) == {"squeezenet": chosen}
    assert chosen.keys() == PARTS.keys()
    names = [layer.name for layer in hookviz.list_layers(model)]
    assert {each["layer"] for each in chosen.values()} <= set(names[:-1])  # the last one's: classes
