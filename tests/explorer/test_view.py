"""A view and its link: what is chosen comes back, what is no choice is left out."""

import re
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hookviz.classroom.link_parameters import PARAMETERS
from hookviz.explorer.view import MOST_STEPS, Cell, HeldScale, PictureRequest, View, choices

NUMBERS = some.integers(0, 999_999)
WORDS = some.text(max_size=1000)
CELLS = some.one_of(*(some.tuples(*[NUMBERS] * parts).map(lambda c: Cell(*c)) for parts in (2, 4)))
OF_OWN_KIND = {
    "top": some.sampled_from([None, 16, 64, 256]),
    "patches": some.booleans(),
    "channel": some.none() | NUMBERS,
    "frame": some.none() | NUMBERS,
    "why": some.none() | NUMBERS,
    "cell": some.none() | CELLS,
    "held": some.none()
    | some.builds(
        lambda one, other, is_signed: HeldScale(
            "0a1b2c3d", min(one, other), max(one, other), is_signed
        ),
        some.floats(-1e38, 1e38),
        some.floats(-1e38, 1e38),
        some.booleans(),
    ),
    "made": some.none()
    | some.builds(PictureRequest, some.integers(1, MOST_STEPS), some.integers(0, 999_999_999)),
}
VIEWS = some.builds(
    View,
    **OF_OWN_KIND,
    **{
        name: some.sampled_from(choice.values)
        if choice.values
        else WORDS
        if choice.default is not None
        else some.none() | WORDS
        for name, choice in choices().items()
        if name not in OF_OWN_KIND
    },
)

A = "sample=cat&name=Cat&model=ShapesNet&weights=pretrained&size=&whole=0&layer=stage1&step=stage1"
SAVED = [
    ("", View()),
    ("model=ShapesNet", View(network="ShapesNet")),
    ("layer=layer1&frame=7&channel=3", View(layer="layer1", frame=7, channel=3)),
    (
        "model=ShapesNet&layer=stem.first.conv&channel=5",
        View(network="ShapesNet", layer="stem.first.conv", channel=5),
    ),
    (
        "model=ShapesNet&sample=star&channel=9&cell=62,60,64,64&origin=Walk",
        View(
            network="ShapesNet",
            sample="star",
            channel=9,
            cell=Cell(62, 60, 64, 64),
            origin="Walk",
        ),
    ),
    ("channel=9&cell=3%2C4", View(channel=9, cell=Cell(3, 4))),
    ("channel=16&cell=48,36,111,111", View(channel=16, cell=Cell(48, 36, 111, 111))),
    (
        "scale=symmetric&sort=max&top=16&channel=2",
        View(scale="symmetric", sort="max", top=16, channel=2),
    ),
    (
        "channel=5&origin=Kernel&sort=mean&scale=channel",
        View(channel=5, origin="Kernel", sort="mean", scale="channel"),
    ),
    ("layers=maps&layer=stem", View(layers="maps", layer="stem")),
    ("channel=3&patches=true", View(channel=3, patches=True)),
    ("patches=true&answers=triangle", View(patches=True, answers="triangle")),
    (
        "patches=true&answers=those+for+this+image",
        View(patches=True, answers="those for this image"),
    ),
    (
        "layer=features.9.expand3x3&channel=5&made=256-0",
        View(layer="features.9.expand3x3", channel=5, made=PictureRequest(256, 0)),
    ),
    ("made=2048-3", View(made=PictureRequest(2048, 3))),
    ("layer=stem.first.conv&after=BatchNorm2d", View(layer="stem.first.conv", after="BatchNorm2d")),
    (
        "model=ResNet-18&layers=maps&layer=layer1.0.relu&output=call+2",
        View(network="ResNet-18", layers="maps", layer="layer1.0.relu", output="call 2"),
    ),
    (
        "family=ResNet&model=ResNet-18&weights=random&size=448&whole=true",
        View(family="ResNet", network="ResNet-18", weights="random", size="448", whole="true"),
    ),
    ("sample=star&inside=stage1&why=3", View(sample="star", inside="stage1", why=3)),
    ("image=Upload&upload=3.jpg", View(image="Upload", upload="3.jpg")),
    (
        f"compare=Split&sort=change&a={re.sub('[&]', '%26', A)}".replace("=Cat", "%3DCat"),
        View(compared="Split", sort="change", pinned=A),
    ),
    (
        "model=ResNet-18&silenced=layer1.0.conv1:0,3-7&scale=percentile&colours=cividis&top=64",
        View(
            network="ResNet-18",
            silenced="layer1.0.conv1:0,3-7",
            scale="percentile",
            colours="cividis",
            top=64,
        ),
    ),
    (  # what is no choice of the explorer, and what is the default
        "lens=grad-cam&grad-cam-target=cat&present=1&lang=zh-CN&sort=index&top=all&compare=B",
        View(),
    ),
]


@pytest.mark.parametrize(("link", "view"), SAVED)
def test_a_link_that_was_saved_still_opens(link: str, view: View) -> None:
    assert len(SAVED) >= 20
    assert View.of_link(dict(parse_qsl(link, keep_blank_values=True))) == view


@given(VIEWS)
def test_a_view_comes_back_from_its_link(view: View) -> None:
    link = view.link()
    assert View.of_link(link) == view
    assert all(
        link[choice.word] != choice.default for choice in choices().values() if choice.word in link
    )


@given(
    some.dictionaries(some.sampled_from([each.word for each in choices().values()]), some.text())
)
def test_any_link_is_read_and_what_it_says_is_kept(link: dict[str, str]) -> None:
    view = View.of_link(link)
    assert View.of_link(view.link()) == view


@pytest.mark.parametrize(
    "link",
    [
        {"sort": "<img src=x>"},
        {"top": "17"},
        {"top": "-16"},
        {"channel": "-1"},
        {"channel": "٣"},  # a digit of another script
        {"channel": "1234567"},
        {"cell": "3"},
        {"cell": "3,4,8"},
        {"cell": "3,4,8,8,8"},
        {"made": "0-1"},
        {"made": "2049-1"},
        {"made": "256"},
        {"patches": "yes"},
        {"compare": "C"},
        {"origin": "Products"},
        {"layers": "all"},
        {"layer": "x" * 1001},
    ],
)
def test_what_is_no_choice_is_left_at_its_default(link: dict[str, str]) -> None:
    assert View.of_link(link) == View()


@pytest.mark.parametrize(
    ("cell", "size", "found"),
    [
        (Cell(3, 4), (8, 8), (3, 4)),  # where the link has no size, it is as it stands
        (Cell(3, 4, 8, 8), (8, 8), (3, 4)),
        (Cell(0, 7, 8, 8), (2, 2), (0, 1)),
        (Cell(62, 60, 64, 64), (16, 16), (15, 15)),
        (Cell(30, 40), (8, 8), (7, 7)),  # beyond the map: its last one
        (Cell(5, 5, 0, 0), (4, 4), (3, 3)),
    ],
)
def test_a_cell_keeps_its_place(cell: Cell, size: tuple[int, int], found: tuple[int, int]) -> None:
    assert cell.on(*size) == found
    for rows, others in ((7, 3), (3, 7), (55, 13), (1, 9)):
        for row in range(rows):
            at, _ = Cell(row, 0, rows, 1).on(others, 1)
            middle = (2 * row + 1) * others  # in halves of a row of the first map
            assert at * 2 * rows <= middle < (at + 1) * 2 * rows


def test_the_links_parameters_say_the_same_of_each_choice() -> None:
    parameters = {each.name: each for each in PARAMETERS}
    for choice in choices().values():
        parameter = parameters[choice.word]
        assert parameter.default in (None, choice.default)
        assert (parameter.is_followed, parameter.is_for_others) == (
            choice.is_followed,
            choice.is_for_others,
        )
    around = {"lang", "lens", "lesson", "present", "step", "target", "class", "follow", "moved"}
    around |= {"like", "means", "mirror", "region"}
    assert {each.word for each in choices().values()} == parameters.keys() - around
