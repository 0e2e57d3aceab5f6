import io

import numpy as np
import torch
from PIL import Image

from hookviz.lessons.small_network import SIDE, STEPS, Frame, maps_at
from hookviz.types import ignore
from hookviz.ui.lessons.parts.training import (
    AT,
    PART,
    Watched,
    facts_and_levels,
    first_frame,
    fixed_picture,
    kernel_pixels,
    strip_png,
    training_of,
)
from hookviz.wording import number, percent
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_before_it_is_trained_the_text_says_so_and_trains_nothing() -> None:
    options = with_defaults(PART, seed="2", rate="small")
    assert PART.facts(star(), options)["seen"] == "What comes of it will stand here."
    assert training_of(options).frames == ()
    watched = Watched("0.03 1", (first_frame(1),), (first_frame(1),), 0, 99, (), is_over=False)
    picture = fixed_picture(star())
    assert picture.shape == (SIDE, SIDE, 3)
    facts, _ = facts_and_levels(watched, picture)
    assert (facts["frames"][0]["loss"], facts["frames"][0]["gradients"]) == (None, [])
    assert facts["kernel"] == 0  # there is no kernel 99


def test_the_text_follows_the_frame_that_is_looked_at() -> None:
    begun = with_defaults(PART, seed="1")
    while len(training_of(begun).frames) < 3:
        training_of(begun).go_on(ignore)
    frames = training_of(begun).frames
    for at in (0, 1, len(frames) - 1):  # another test may have trained it further
        seen = str(PART.facts(star(), {**begun, AT: str(at)})["seen"])
        assert f"After {frames[at].step:,} of {STEPS:,} steps" in seen
        assert number(frames[at].loss) in seen
        assert number(frames[0].loss) in seen
        assert percent(frames[at].accuracy) in seen
    assert seen == PART.facts(star(), {**begun, AT: "999"})["seen"]


def test_kernels_are_drawn_each_by_its_own_largest_weight() -> None:
    frame = first_frame(1)
    pixels = kernel_pixels(frame)
    weights = frame.weights["conv1.weight"].numpy()
    largest = np.abs(weights).max((1, 2, 3), keepdims=True)
    expected = np.round(127.5 + 127.5 * weights / largest).transpose(0, 2, 3, 1)
    assert np.abs(pixels.astype(int) - expected).max() <= 1
    zeros = dict(frame.weights) | {"conv1.weight": torch.zeros(8, 3, 7, 7)}
    assert (kernel_pixels(type(frame)(0, zeros, 0.0, 0.0, ())) == 128).all()
    strip = np.asarray(Image.open(io.BytesIO(strip_png(frame))))
    assert strip.shape == (7, 8 * 7 + 7, 4)
    assert np.array_equal(strip[:, :7, :3], pixels[0])


def test_a_frames_kernels_and_maps_lie_where_the_browser_looks_for_them() -> None:
    first = first_frame(1)
    later = Frame(50, first_frame(2).weights, 1.5, 0.25, (1.0, 2.0, 3.0, 4.0))
    watched = Watched("0.03 1", (first, later), (first, later), 1, 3, (), is_over=True)
    picture = fixed_picture(star())
    facts, levels = facts_and_levels(watched, picture)
    count, side = facts["kernels"]
    of_kernels = count * side * side * 3
    of_maps = count * facts["firstSide"] ** 2
    size = of_kernels + of_maps + sum(each[2] ** 2 for each in facts["deeper"])
    assert len(levels) == 2 * size
    second = np.frombuffer(levels, np.uint8)[size:]
    assert np.array_equal(second[:of_kernels].reshape(count, side, side, 3), kernel_pixels(later))
    maps = maps_at(later, picture)
    first_maps = second[of_kernels : of_kernels + of_maps].reshape(count, facts["firstSide"], -1)
    values = maps["conv1"][5].numpy()
    expected = 127 + 127 * values / np.abs(values).max()
    assert np.abs(first_maps[5].astype(float) - expected).max() <= 0.5 + 1e-3
    name, channel, cells = facts["deeper"][0]
    at = of_kernels + of_maps
    values = maps[name][channel].numpy()
    shown = second[at : at + cells**2].reshape(cells, cells).astype(float)
    assert np.abs(shown - (127 + 127 * values / np.abs(values).max())).max() <= 0.5 + 1e-3
