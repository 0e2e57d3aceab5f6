"""The benchmark of an atlas's pass itself, on few images of a small network."""

from scripts.atlas_speed import measure_atlas, table


def test_every_contestant_sees_every_image() -> None:
    speeds = measure_atlas(20, "shapesnet")
    assert [each.images for each in speeds] == [20] * 5
    assert all(each.seconds > 0 and each.processor > 0 for each in speeds)
    lines = table(speeds).splitlines()
    assert len(lines) == 7
    assert lines[2].startswith("| shapesnet, 20 images: the bare passes")
    assert lines[2].endswith("| 1.00 | 1.00 |")
    assert lines[3].startswith("| **shapesnet, 20 images: the pass of an atlas**")
    assert lines[4].startswith("| shapesnet, 20 images: an atlas with its patches cut")
    assert speeds[2].seconds > speeds[1].seconds
    assert speeds[2].processor > speeds[1].processor
