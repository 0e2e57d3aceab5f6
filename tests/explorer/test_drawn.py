"""What a view shows against `make_grid` and `draw_pair`, and a stream's held scale."""

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
from hookviz.explorer.answering import answer
from hookviz.explorer.drawn import drawn, held_again, held_in_view
from hookviz.explorer.given import subject_given
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Colours, Pinned, Subject
from hookviz.explorer.view import View
from hookviz.types import Model, Preprocess
from tests.explorer.asking import ask
from tests.explorer.subjects import pinned, subject_of


@pytest.fixture
def subject(model: Model) -> Subject:
    return subject_of(model, colours=Colours("berlin", "inferno"))


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
    shown = drawn(subject, view)
    step = str(shown.looked.step)
    activation = hookviz.capture(model, subject.model_input, shown.looked.step.layer)[step]
    assert shown.grid.sprite == make_grid(activation, **options).sprite
    assert (shown.grid.title, shown.compared, shown.warning) == (step, None, "")
    np.testing.assert_array_equal(shown.maps, activation.values)


def test_it_is_drawn_once_for_each_way_to_look(subject: Subject) -> None:
    first = drawn(subject, View(channel=3)).own
    assert drawn(subject, View(channel=4, layer="stem.first.conv")).own is first
    assert drawn(subject, View(top=64)).own is first  # of 32 channels
    others = [
        drawn(subject, view).own
        for view in (View(sort="max"), View(scale="layer"), View(top=16), View(after="ReLU"))
    ]
    others.append(drawn(replace(subject, colours=Colours()), View()).own)
    assert len({id(each) for each in (first, *others)}) == 6


def test_a_held_scale_is_that_of_its_own_layer(subject: Subject) -> None:
    own = drawn(subject, View()).own
    limits = replace(own.limits, low=own.limits.low * 2, high=own.limits.high * 2)
    activation = drawn(subject, View()).activation
    of = scale_of(subject.model, activation, "balanced")
    held = held_in_view(ScaleLock(of, limits, signed=True))
    assert View.of_link(View(held=held).link()).held == held
    assert drawn(subject, View(held=held)).own.limits.high[0] == limits.high[0]
    for other in (View(layer="stage1"), View(scale="layer")):
        alone = drawn(subject, other).own.sprite
        assert drawn(subject, replace(other, held=held)).own.sprite == alone


@pytest.mark.parametrize("view", [View(), View(sort="change", top=16), View(colours="cividis")])
def test_a_pair_is_on_one_scale(subject: Subject, model: Model, view: View) -> None:
    shown = drawn(replace(subject, pinned=pinned(subject, "stem.first.norm")), view)
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
    again = drawn(replace(subject, pinned=pinned(subject, "stem.first.norm")), view).compared
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
    return subject_given(model, file.getvalue())


@pytest.mark.parametrize(("asked", "frame"), [(None, 3), (0, 0), (5, 5), (6, 3)])
def test_of_a_clip_the_frame_that_is_asked_for_is_drawn(
    clip: Subject, asked: int | None, frame: int
) -> None:
    with torch.no_grad():
        seen = clip.model.network.get_submodule("0")(clip.model_input.tensor)[0]
    view = View(layer="0", frame=asked)
    shown = drawn(clip, view)
    assert torch.equal(shown.maps, seen[:, frame])
    alone = make_grid(seen[:, frame], scale=shown.look.scale, colormap=shown.own.colormap.name)
    np.testing.assert_array_equal(shown.own.levels, alone.levels)
    layers = answer(clip, view, Question("layers")).facts
    assert (layers["frames"], layers["frame"]) == (6, frame)
    capture = hookviz.capture(clip.model, clip.model_input, "0")
    of_a = Pinned("l", "d", "i", "t", "0", lambda: capture["0"].values[:, 3], lambda: capture)
    compared = drawn(replace(clip, pinned=of_a), view).compared  # of the same frame
    assert compared is not None
    np.testing.assert_array_equal(compared.maps.a, seen[:, frame].numpy())
    np.testing.assert_array_equal(compared.maps.a, compared.maps.b)


def test_sums_of_a_clip_s_cells_say_that_there_are_none() -> None:
    torch.manual_seed(0)
    network = SwinTransformer3d([2, 4, 4], 12, [2], [2], [2, 4, 4], num_classes=5)
    model = hookviz.wrap(network, Preprocess(36, 32, frames=4))
    subject = subject_given(model, "assets/samples/cat.jpg")
    for layer in ("features.0.0.norm1", "features.0.0.mlp.0"):
        said = ask(subject, "cell", View(layer=layer, layers="maps"), channel=1, row=0, column=0)
        assert "works on the frames of a clip" in said.facts["info"]
    still = answer(subject, View(layer="features.0.0"), Question("layers")).facts
    assert (still["frames"], still["frame"], still["shape"]) == (2, 1, [12, 2, 8, 8])


def test_what_a_view_keeps_is_drawn_on_again_for_the_same_thing_alone() -> None:
    of = ("network", "conv1", "layer")

    def held(*lows: float) -> ScaleLock:
        return ScaleLock(of, Limits("layer", np.array(lows), np.array(lows) + 3), True)

    kept = held_in_view(held(-1.5, -1.5))
    again = held_again(kept, of, "layer", 4)
    assert again is not None
    assert again.limits is not None
    assert (again.limits.low.tolist(), again.limits.high.tolist()) == ([-1.5] * 4, [1.5] * 4)
    assert again.signed
    assert held_again(kept, ("network", "conv2", "layer"), "layer", 4) is None
    assert held_again(None, of, "layer", 4) is None
    assert held_in_view(held(-1.5, -2.0)) is held_in_view(None) is None  # one for each channel
