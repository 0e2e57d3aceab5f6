from urllib.parse import parse_qs, urlencode

import pytest

from hookviz.classroom.link_parameters import (
    LONGEST,
    OF_ONE,
    PARAMETERS,
    SharedState,
    known_choices,
    read_state,
)
from hookviz.errors import ClassroomError
from hookviz.ui.state import SILENCED
from hookviz.ui.theme import PRESENT
from tests.ui.link_parameters import in_code


def test_parameters_of_ones_own_are_in_no_link_and_no_slide() -> None:
    names = [each.name for each in PARAMETERS]
    assert len(names) == len({*names})
    assert in_code() | {SILENCED, PRESENT} <= {*names}
    for each in PARAMETERS:
        assert each.is_in_slides or not each.is_for_others
        assert each.is_in_slides or not each.is_followed
    own = {each.name for each in PARAMETERS if not each.is_for_others}
    assert own == {"class", "follow", "held", "present", "upload"}


def test_choices_are_shared_and_what_is_of_the_teacher_alone_stays() -> None:
    link = "?model=ShapesNet&layer=stem.first.conv&channel=5&grad-cam-target=cat&lens=grad-cam"
    state = read_state(link)
    assert state.sample
    assert parse_qs(state.query) == parse_qs(link[1:])
    turned = "&".join(reversed(link[1:].split("&")))
    assert read_state(turned) == state
    own = dict.fromkeys(OF_ONE, "x")
    assert read_state(urlencode(own | {"cell": "1,2"})) == SharedState("cell=1%2C2")
    pinned = urlencode({"sample": "cat", "name": "Cat", "model": "ShapesNet"})
    assert parse_qs(read_state(urlencode({"a": pinned})).query) == {"a": [pinned]}


@pytest.mark.parametrize("image", ["Upload", "Camera", "Live"])
def test_no_photograph_is_shared(image: str) -> None:
    pinned = urlencode({"upload": "my face.png", "name": "my face", "model": "ShapesNet"})
    link = {"image": image, "upload": "abc", "sample": "cat", "a": pinned, "compare": "A"}
    state = read_state(urlencode(link | {"channel": "3"}))
    assert state == SharedState("channel=3", sample=False)


@pytest.mark.parametrize(
    "query",
    [
        "javascript:alert(1)",
        "https://elsewhere.example/?model=x".partition("?")[0],
        urlencode({"next": "https://elsewhere.example", "token": "x", "__proto__": "y"}),
        urlencode({"layer": "x" * 1300}),
        urlencode({"layer": "a\nb", "model": "a\u202eb"}),
        "#model=x",
    ],
)
def test_what_is_no_choice_of_the_page_is_left_out(query: str) -> None:
    assert read_state(query).query == ""


@pytest.mark.parametrize(
    "query", ["model=" + "x" * LONGEST, "&".join(f"a{n}=1" for n in range(200)), "model=%ff"]
)
def test_what_is_too_much_or_no_link_is_refused(query: str) -> None:
    with pytest.raises(ClassroomError):
        read_state(query)


def test_every_choice_that_a_widget_binds_to_the_link_is_known() -> None:
    bound = in_code()
    assert {"model", "layer", "lens"} <= bound
    assert bound - known_choices() - OF_ONE == set()
