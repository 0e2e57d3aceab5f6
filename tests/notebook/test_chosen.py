"""Views as a link's words, of a person's hand and of a client's message."""

import pytest

from hookviz.errors import SettingError
from hookviz.explorer.view import Cell, View
from hookviz.notebook.chosen import as_view, from_client, to_client


def test_words_of_a_person_and_of_a_client_are_read() -> None:
    view = as_view({"channel": 3, "patches": False, "top": 16, "layer": None, "cell": "1,2"})
    assert view == View(channel=3, top=16, cell=Cell(1, 2))
    assert as_view(view) is view
    link = {"layer": "conv1", "channel": "3", "sort": "mean"}
    assert to_client(from_client(link, None), None) == link
    assert from_client({**link, "sort": "odd", "channel": 3, 4: "x"}, None) == View(layer="conv1")
    assert from_client("conv1", None) == View()
    assert to_client(View(network="vgg11", layer="a"), None) == {"layer": "a"}


@pytest.mark.parametrize(
    ("given", "words"), [({"model": "vgg11"}, "Choose from layers"), ({"top": 17}, "top")]
)
def test_what_is_no_choice_here_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        as_view(given)
