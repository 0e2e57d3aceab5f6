from hookviz.drawing.tree_panel import TreePanel


def test_a_tree_shows_as_many_levels_as_one_takes_in() -> None:
    def shown(*depths: int) -> int:
        return TreePanel("tree", ("name",), (("a",),) * len(depths), depths=depths).shown_depth

    assert shown() == 0
    assert shown(0, 0) == 0
    assert shown(0, 1, 2, 2, 0) == 2
    assert shown(*(0, 1, 2) * 6) == 0
    assert shown(*(0, 1, 2, 2, 2) * 5) == 1  # five rows alone say little
    assert shown(0, *(1,) * 39) == 1
    assert shown(0, *(1,) * 40) == 0
