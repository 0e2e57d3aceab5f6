"""A rendered view against `make_grid`, `draw_pair` and NumPy: alone, beside A, on a held scale."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.models.video.swin_transformer import SwinTransformer3d

import hookviz
from hookviz.drawing.grid import ScaleLock, make_grid, scale_of
from hookviz.drawing.pair import draw_pair
from hookviz.drawing.scales import Limits
from hookviz.drawing.statistics import SORTS
from hookviz.explorer.answering import answer
from hookviz.explorer.question import NotThereError, Question
from hookviz.explorer.rendering import (
    Look,
    RenderedPair,
    look_of,
    pair_facts,
    pinned_pair,
    render,
    scale_in_view,
    scale_of_view,
    sorts,
    tops,
)
from hookviz.explorer.subject import Colours, Pinned, Subject, make_subject
from hookviz.explorer.view import View
from hookviz.types import Model, Preprocess
from tests.explorer.asking import ask, asked, pinned, subject_of, words
from tests.networks import Tiny, as_model, seeded

DARK = Colours("berlin", "inferno")


def test_automatic_follows_the_page() -> None:
    assert look_of(View(), DARK, 64) == Look(
        "index", None, "balanced", "inferno", "berlin", "berlin"
    )
    assert look_of(View(), Colours(), 64).signed_colormap == "RdBu_r"


def test_a_chosen_colormap_is_that_of_any_layer_but_not_of_a_difference() -> None:
    look = look_of(View(colours="gray", scale="layer"), DARK, 64)
    assert (look.colormap, look.signed_colormap, look.of_difference) == ("gray", "gray", "berlin")
    assert look.scale == "layer"
    assert sorts(alike=False) == tuple(SORTS)
    assert set(sorts(alike=True)) - set(SORTS) == {"change"}


def test_as_many_channels_as_there_are_is_all() -> None:
    for top, channels, shown in ((16, 17, 16), (16, 16, None), (64, 8, None)):
        assert look_of(View(top=top), DARK, channels).top == shown
    assert tops(1) == tops(16) == ("all",)
    assert tops(65) == ("all", "16", "64")
    assert tops(2048) == ("all", "16", "64", "256")


@pytest.fixture
def tiny_subject() -> Subject:
    return subject_of(as_model(seeded(Tiny).eval()))


def compared(subject: Subject, view: View | None = None) -> RenderedPair:
    found = render(subject, view or View()).compared
    assert found is not None
    return found


def of_other_image(subject: Subject) -> Subject:
    other = subject_of(subject.model, "cat")
    return replace(subject, pinned=pinned(other, "conv1"))


def test_the_maps_of_a_large_one_stay_where_they_are(tiny_subject: Subject) -> None:
    large = torch.zeros(4, 257, 256)
    maps = pinned_pair(
        replace(tiny_subject, pinned=Pinned("l", "d", "i", "m", "s", lambda: large)), "s", large
    )
    assert maps is not None
    view = render(replace(tiny_subject, pinned=None), View())
    assert pair_facts(maps, maps.draw(view.look, "s"), 1)["a"]["values"] is None
    assert pinned_pair(tiny_subject, "conv1", large) is None  # where nothing is pinned


def test_a_is_read_once(tiny_subject: Subject) -> None:
    read = []
    tiny_subject = of_other_image(tiny_subject)
    assert tiny_subject.pinned is not None
    own = tiny_subject.pinned.read

    def counted() -> torch.Tensor:
        read.append(1)
        return own()

    tiny_subject = replace(tiny_subject, pinned=replace(tiny_subject.pinned, read=counted))
    first, again = compared(tiny_subject), compared(tiny_subject, View(channel=2))
    assert (len(read), first.pair is again.pair) == (1, True)
    assert first.maps.channels is again.maps.channels
    assert tiny_subject.pinned is not None
    compared(replace(tiny_subject, pinned=replace(tiny_subject.pinned, link="another")))
    assert len(read) == 2


def test_what_is_asked_for_of_two_shapes_is_b(tiny_subject: Subject) -> None:
    unlike = replace(tiny_subject, pinned=pinned(tiny_subject, "conv2"))
    assert compared(unlike).maps.choices == ("A", "B")
    assert [compared(unlike, View(compared=each)).shown for each in ("A", "B", "Split")] == [
        *("A", "B", "B")
    ]
    alike = of_other_image(tiny_subject)
    assert compared(alike, View(compared="Difference")).shown == "Difference"
    with pytest.raises(hookviz.HookVizError):
        _ = compared(unlike).maps.channels


@pytest.fixture
def subject(model: Model) -> Subject:
    return subject_of(model, colours=Colours("berlin", "inferno"))


def test_those_that_changed_most_come_first(subject: Subject) -> None:
    other = subject_of(subject.model, "heart")
    facts = asked(replace(subject, pinned=pinned(other, "stem.first.conv")), "changes")
    b, a = (
        hookviz.capture(subject.model, each.model_input)["stem.first.conv"].values.double().numpy()
        for each in (subject, other)
    )
    difference = np.abs(b - a).mean((1, 2))
    assert [row[0] for row in facts["rows"]] == np.argsort(-difference)[:8].tolist()
    for channel, *numbers in facts["rows"]:
        correlation = np.corrcoef(a[channel].ravel(), b[channel].ravel())[0, 1]
        shown = [float(each.replace("−", "-")) for each in numbers]
        assert shown[:2] == pytest.approx([difference[channel], correlation], rel=6e-3, abs=6e-3)
    assert len(facts["heads"]) == len(facts["rows"][0]) == 4
    mean = np.mean([np.corrcoef(x.ravel(), y.ravel())[0, 1] for x, y in zip(a, b, strict=True)])
    said = words(facts["says"])
    assert said.startswith("Click a tile for its map in A and in B. Hold F to flip")
    on_average = said.partition("correlation is ")[2].partition(" on average")[0]
    assert float(on_average.replace("−", "-")) == pytest.approx(mean, rel=6e-3, abs=6e-3)
    assert facts["caption"].startswith("The channels that changed most")
    zeros = torch.zeros(32, 64, 64)  # of which nothing is known
    of_zeros = replace(pinned(other, "stem.first.conv", link="zeros"), read=lambda: zeros)
    says = asked(replace(subject, pinned=of_zeros), "changes")["says"]
    assert words(says) == "Click a tile for its map in A and in B. Hold F to flip between the two."


def test_without_a_pair_of_one_shape_there_are_none(subject: Subject) -> None:
    with pytest.raises(NotThereError, match="Nothing is pinned as A"):
        asked(subject, "changes")
    with pytest.raises(NotThereError, match="A has 128 maps of 8×8 and B 32 of 64×64"):
        asked(replace(subject, pinned=pinned(subject, "stage3")), "changes", View())


@pytest.mark.parametrize(
    ("view", "options"),
    [
        (View(), {"scale": "balanced", "colormap": "berlin"}),
        (View(after="ReLU"), {"scale": "balanced", "colormap": "inferno"}),
        (
            View(sort="variance", top=16, scale="channel", colours="cividis"),
            {"sort": "variance", "top": 16, "scale": "channel", "colormap": "cividis"},
        ),
        (View(sort="change"), {"scale": "balanced", "colormap": "berlin"}),
        (View(layer="stage3"), {"scale": "balanced", "colormap": "inferno"}),
    ],
)
def test_it_is_drawn_as_the_library_draws_it(
    subject: Subject, model: Model, view: View, options: dict[str, Any]
) -> None:
    shown = render(subject, view)
    step = str(shown.resolved.step)
    activation = hookviz.capture(model, subject.model_input, shown.resolved.step.layer)[step]
    assert shown.grid.sprite == make_grid(activation, **options).sprite
    assert (shown.grid.title, shown.compared, shown.warning) == (step, None, "")
    np.testing.assert_array_equal(shown.maps, activation.values)


def test_it_is_drawn_once_for_each_way_to_look(subject: Subject) -> None:
    first = render(subject, View(channel=3)).own
    assert render(subject, View(channel=4, layer="stem.first.conv")).own is first
    assert render(subject, View(top=64)).own is first  # of 32 channels
    others = [
        render(subject, view).own
        for view in (View(sort="max"), View(scale="layer"), View(top=16), View(after="ReLU"))
    ]
    others.append(render(replace(subject, colours=Colours()), View()).own)
    assert len({id(each) for each in (first, *others)}) == 6


def test_a_held_scale_is_that_of_its_own_layer(subject: Subject) -> None:
    own = render(subject, View()).own
    limits = replace(own.limits, low=own.limits.low * 2, high=own.limits.high * 2)
    activation = render(subject, View()).activation
    of = scale_of(subject.model, activation, "balanced")
    held = scale_in_view(ScaleLock(of, limits, signed=True))
    assert View.of_link(View(held=held).link()).held == held
    assert render(subject, View(held=held)).own.limits.high[0] == limits.high[0]
    for other in (View(layer="stage1"), View(scale="layer")):
        alone = render(subject, other).own.sprite
        assert render(subject, replace(other, held=held)).own.sprite == alone


@pytest.mark.parametrize("view", [View(), View(sort="change", top=16), View(colours="cividis")])
def test_a_pair_is_on_one_scale(subject: Subject, model: Model, view: View) -> None:
    shown = render(replace(subject, pinned=pinned(subject, "stem.first.norm")), view)
    capture = hookviz.capture(model, subject.model_input, ["stem.first.conv", "stem.first.norm"])
    b, a = (capture[name].values.numpy() for name in ("stem.first.conv", "stem.first.norm"))
    order = np.argsort(-np.abs(b.astype(float) - a).mean((1, 2)), kind="stable")
    expected = draw_pair(
        a,
        b,
        titles=("stem.first.norm", "stem.first.conv"),
        order=order.tolist() if view.sort == "change" else "index",
        top=view.top,
        scale="balanced",
        colormaps=("inferno", "berlin"),
    )
    assert shown.compared is not None
    assert shown.compared.pair.sprite == expected.sprite
    np.testing.assert_array_equal(shown.grid.order, expected.b.order)
    assert shown.compared.pair.difference is not None
    assert expected.difference is not None
    assert shown.compared.pair.difference.sprite == expected.difference.sprite
    again = render(replace(subject, pinned=pinned(subject, "stem.first.norm")), view).compared
    assert again is not None
    assert again.pair is shown.compared.pair


@pytest.fixture(scope="module")
def clip() -> Subject:
    torch.manual_seed(0)
    layers = (nn.Conv3d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten())
    network = nn.Sequential(*layers, nn.Linear(4, 5))
    model = hookviz.wrap(network, Preprocess(20, 16, frames=6))
    frames = [Image.effect_noise((24, 24), 20 * number).convert("RGB") for number in range(1, 7)]
    file = BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    return make_subject(model, file.getvalue())


@pytest.mark.parametrize(("asked", "frame"), [(None, 3), (0, 0), (5, 5), (6, 3)])
def test_of_a_clip_the_frame_that_is_asked_for_is_drawn(
    clip: Subject, asked: int | None, frame: int
) -> None:
    with torch.no_grad():
        seen = clip.model.network.get_submodule("0")(clip.model_input.tensor)[0]
    view = View(layer="0", frame=asked)
    shown = render(clip, view)
    assert torch.equal(shown.maps, seen[:, frame])
    alone = make_grid(seen[:, frame], scale=shown.look.scale, colormap=shown.own.colormap.name)
    np.testing.assert_array_equal(shown.own.levels, alone.levels)
    layers = answer(clip, view, Question("layers")).facts
    assert (layers["frames"], layers["frame"]) == (6, frame)
    capture = hookviz.capture(clip.model, clip.model_input, "0")
    of_a = Pinned("l", "d", "i", "t", "0", lambda: capture["0"].values[:, 3], lambda: capture)
    compared = render(replace(clip, pinned=of_a), view).compared  # of the same frame
    assert compared is not None
    np.testing.assert_array_equal(compared.maps.a, seen[:, frame].numpy())
    np.testing.assert_array_equal(compared.maps.a, compared.maps.b)


def test_sums_of_a_clip_s_cells_say_that_there_are_none() -> None:
    torch.manual_seed(0)
    network = SwinTransformer3d([2, 4, 4], 12, [2], [2], [2, 4, 4], num_classes=5)
    model = hookviz.wrap(network, Preprocess(36, 32, frames=4))
    subject = make_subject(model, "assets/samples/cat.jpg")
    for layer in ("features.0.0.norm1", "features.0.0.mlp.0"):
        said = ask(subject, "cell", View(layer=layer, layers="maps"), channel=1, row=0, column=0)
        assert "works on the frames of a clip" in said.facts["info"]
    still = answer(subject, View(layer="features.0.0"), Question("layers")).facts
    assert (still["frames"], still["frame"], still["shape"]) == (2, 1, [12, 2, 8, 8])


def test_what_a_view_keeps_is_drawn_on_again_for_the_same_thing_alone() -> None:
    of = ("network", "conv1", "layer")

    def held(*lows: float) -> ScaleLock:
        return ScaleLock(of, Limits("layer", np.array(lows), np.array(lows) + 3), True)

    kept = scale_in_view(held(-1.5, -1.5))
    again = scale_of_view(kept, of, "layer", 4)
    assert again is not None
    assert again.limits is not None
    assert (again.limits.low.tolist(), again.limits.high.tolist()) == ([-1.5] * 4, [1.5] * 4)
    assert again.signed
    assert scale_of_view(kept, ("network", "conv2", "layer"), "layer", 4) is None
    assert scale_of_view(None, of, "layer", 4) is None
    assert scale_in_view(held(-1.5, -2.0)) is scale_in_view(None) is None  # one for each channel
