"""The benchmark of an atlas's pass itself, on few images of a small network."""

from scripts.atlas_speed import measure_atlas, table


def test_every_contestant_sees_every_image() -> None:
    speeds = measure_atlas(20, "shapesnet")
    assert [each.images for each in speeds] == [20] * 4
    assert all(each.seconds > 0 and each.processor > 0 for each in speeds)
    lines = table(speeds).splitlines()
    assert len(lines) == 6
    assert lines[2].startswith("| shapesnet, 20 images: the bare passes")
    assert lines[2].endswith("| 1.00 | 1.00 |")
    assert lines[3].startswith("| **shapesnet, 20 images: the pass of an atlas**")
