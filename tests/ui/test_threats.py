"""Rows of docs/threats.md: what links and names can do to the page, as Streamlit runs it."""

from typing import Any

import pytest
import torch

import hookviz
from hookviz.explorer.view import choices
from hookviz.lenses.contract import parameters, running
from hookviz.lenses.contract.lens import Lens
from hookviz.models import labels, user_models
from hookviz.settings import settings
from tests.every_way import EVERY_WAY
from tests.networks import seeded
from tests.pictures import encoded, picture
from tests.ui.pages import opened
from tests.ui.questions import asked

# ── parameters that a link can carry ───────────────────────────────────────────────────────────

RUBBISH = (
    "",
    "-1",
    "1e999",
    "nan",
    "9" * 5000,
    "0-99999," * 5000,
    "../../etc/passwd\0",
    "<img src=x onerror=alert(1)>",
    "\U0001f4a5\u202e\ud7ff\n\r\t[a](javascript:alert(1))",
    "x" * 1_000_000,
)
_LONGEST_LINK = 400_000  # Streamlit refuses more than 512 KB
VIEW = (*(each.word for each in choices().values()), "lens")
_TURNS = 5  # so that each parameter meets two pieces alone


@pytest.mark.parametrize("place", range(len(RUBBISH)))
def test_rubbish_in_every_parameter_of_the_view_leaves_a_page(
    no_weights_anywhere: None, place: int
) -> None:
    """Each piece in all parameters at once; and in some of them alone, by turns."""
    value = RUBBISH[place]
    for name in VIEW if EVERY_WAY else VIEW[place % _TURNS :: _TURNS]:
        page = opened(**{"model": "ShapesNet", name: value})  # which is the quickest
        is_read = name != "model" and len(value) < _LONGEST_LINK
        model = "ShapesNet" if is_read else "SqueezeNet (photographs)"
        assert page.selectbox(key="model").value == model
        assert all(len(element.value) < 1000 for element in (*page.warning, *page.error))
    page = opened(**dict.fromkeys(VIEW, value))
    assert asked(page, "layers")["layer"] == "features.0"
    assert asked(page, "tiles")["order"] == list(range(64))


def rubbish_by_lens() -> dict[str, list[str]]:
    """For each kind of parameter every piece of rubbish at some lens.

    What a value means is read by the kind, so that another lens with the same kinds adds nothing.
    """
    values = (*RUBBISH[:-1], "x" * 10_000)
    met: set[tuple[type, str]] = set()
    chosen: dict[str, list[str]] = {}
    for lens in running.list_lenses():
        kinds = {type(parameter) for parameter in lens.parameters}
        asked = [value for value in values if {(kind, value) for kind in kinds} - met]
        met |= {(kind, value) for kind in kinds for value in asked}
        if asked:
            chosen[lens.slug] = asked
    return chosen


@pytest.mark.parametrize(
    ("slug", "values"),
    [
        # those that climb do all their steps where the number of them is rubbish
        pytest.param(slug, values, marks=pytest.mark.sweep("by day: the other lenses"))
        if slug in {"maximize", "inversion"}
        else (slug, values)
        for slug, values in rubbish_by_lens().items()
    ],
    ids=rubbish_by_lens(),
)
def test_rubbish_in_every_parameter_of_a_lens_leaves_a_page(
    no_weights_anywhere: None, slug: str, values: list[str]
) -> None:
    lens = running.find_lens(slug)
    names = [f"{slug}-{parameter.name}" for parameter in lens.parameters]
    for every in values:
        value = every[: _LONGEST_LINK // max(1, len(names))]
        page = opened(model="ShapesNet", lens=slug, **dict.fromkeys(names, value))
        assert page.header[0].value == lens.question


@pytest.mark.parametrize("given", ["0-99999,0-99999", "," * 200_000, "1-0", "0-999999"])
def test_channels_cannot_be_asked_for_without_end(given: str) -> None:
    with pytest.raises(hookviz.HookVizError, match="channel numbers such as"):
        parameters.Channels().resolve(given, None)  # type: ignore[arg-type]


# ── hostile names ──────────────────────────────────────────────────────────────────────────────

HOSTILE_NAMES = (
    "$\\frac{$",
    "$x$ & <b>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1)) ![b](http://x/) `c` :red[d] :material/home:",
    "../../../etc/passwd",
    "\x07\u202e\u0000",
    "漢字 \U0001f4a5",
)


def hostile_network() -> torch.nn.Sequential:
    """A network whose layers have the names, each after another."""
    first = torch.nn.Conv2d(3, 4, 3)
    network = torch.nn.Sequential()
    for place, name in enumerate(HOSTILE_NAMES):
        network.add_module(name.replace(".", "·"), torch.nn.Conv2d(4, 4, 1) if place else first)
    network.add_module("pool", torch.nn.AdaptiveAvgPool2d(1))
    network.add_module("flat", torch.nn.Flatten())
    network.add_module("head", torch.nn.Linear(4, len(HOSTILE_NAMES)))
    return network


def hostile_model() -> hookviz.Model:
    """A model whose name, layers and classes are all hostile; `HOOKVIZ_MODEL` can name it."""
    steps = hookviz.Preprocess(resize=16, crop=16)
    return hookviz.wrap(seeded(hostile_network), steps, HOSTILE_NAMES, name=HOSTILE_NAMES[2])


@pytest.mark.filterwarnings("ignore:Glyph")  # a chart's font lacks some letters
@pytest.mark.parametrize("lens", running.list_lenses(), ids=lambda lens: lens.slug)
def test_no_name_ends_a_lens(no_weights_anywhere: None, lens: Lens) -> None:
    """On the page, where tables, charts, captions and alternative texts are made of names."""
    model = hostile_model()
    user_models.add(model)
    try:
        opened(lens=lens.slug)
    finally:
        user_models.remove(model)


def test_half_a_letter_in_a_label_becomes_a_whole_one() -> None:
    """JSON can write what no page and no file can hold."""
    found = labels.read_labels(b'["a\\ud800b", "c"]', "labels.json")
    assert found == ("a?b", "c")


def test_more_images_are_bounded_together(
    no_weights_anywhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is decoded and all are kept at once, so the limit of pixels is for all of them."""
    monkeypatch.setenv("HOOKVIZ_MAX_PIXELS", "300000")
    settings.cache_clear()
    embedding = running.find_lens("embedding")
    page = opened(lens=embedding.slug)
    files = [(f"{n}.png", encoded(picture(n, 300, 200)), "image/png") for n in range(6)]
    chosen: Any = page.get("file_uploader")[0]
    chosen.set_value(files[:5]).run()
    assert not page.error
    chosen = page.get("file_uploader")[0]
    chosen.set_value(files).run()
    assert "Together these images have more than 0.3 million pixels" in "".join(
        error.value.replace("\\", "") for error in page.error
    )
