"""What the text says of a training, and what is drawn of its frames."""

import io

import numpy as np
import torch
from PIL import Image

from hookviz.lessons.parts.training import (
    AT,
    PART,
    first_frame,
    fixed_picture,
    kernel_pixels,
    strip_png,
    training_of,
)
from hookviz.lessons.small_network import SIDE, STEPS
from hookviz.types import ignore
from hookviz.wording import number, percent
from tests.lessons.parts.scenes import star, with_defaults


def test_before_it_is_trained_the_text_says_so_and_trains_nothing() -> None:
    options = with_defaults(PART, seed="2", rate="small")
    assert PART.facts(star(), options)["seen"] == "What comes of it will stand here."
    assert training_of(options).frames == ()


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


def test_the_picture_is_the_middle_of_the_chosen_image() -> None:
    assert fixed_picture(star()).shape == (SIDE, SIDE, 3)
