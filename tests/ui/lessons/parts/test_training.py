import numpy as np

from hookviz.lessons.small_network import SIDE, STEPS, Frame, maps_at
from hookviz.types import ignore
from hookviz.ui.lessons.parts.training import (
    AT,
    PART,
    TrainingView,
    facts_and_levels,
    first_frame,
    fixed_picture,
    kernel_pixels,
    training_of,
)
from hookviz.wording import number, percent
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_before_it_is_trained_the_text_says_so_and_trains_nothing() -> None:
    options = with_defaults(PART, seed="2", rate="small")
    assert PART.facts(star(), options)["seen"] == "What comes of it will stand here."
    assert training_of(options).frames == ()
    view = TrainingView("0.03 1", (first_frame(1),), (first_frame(1),), 0, 99, (), is_over=False)
    picture = fixed_picture(star())
    assert picture.shape == (SIDE, SIDE, 3)
    facts, _ = facts_and_levels(view, picture)
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


def test_a_frames_kernels_and_maps_lie_where_the_browser_looks_for_them() -> None:
    first = first_frame(1)
    later = Frame(50, first_frame(2).weights, 1.5, 0.25, (1.0, 2.0, 3.0, 4.0))
    view = TrainingView("0.03 1", (first, later), (first, later), 1, 3, (), is_over=True)
    picture = fixed_picture(star())
    facts, levels = facts_and_levels(view, picture)
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
