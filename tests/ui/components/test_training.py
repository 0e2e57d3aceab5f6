"""What the browser gets of a training: where each byte lies, and which numbers go with it."""

import numpy as np

from hookviz.lessons.parts.training import first_frame, fixed_picture, kernel_pixels
from hookviz.lessons.small_network import Frame, maps_at
from hookviz.ui.components.training import Watched, facts_and_levels
from tests.lessons.parts.scenes import star


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


def test_what_was_not_measured_is_no_number() -> None:
    first = first_frame(1)
    watched = Watched("0.03 1", (first,), (first,), 0, 99, (), is_over=False)
    facts, _ = facts_and_levels(watched, fixed_picture(star()))
    assert facts["frames"][0]["loss"] is None
    assert facts["frames"][0]["gradients"] == []
    assert facts["kernel"] == 0  # there is no kernel 99
