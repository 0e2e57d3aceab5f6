import numpy as np
import pytest

from hookviz.explaining.patched_shares import Patching, PatchRow


def patching_of(**shares: object) -> Patching:
    arrays = {name: np.asarray(values, np.float64) for name, values in shares.items()}
    return Patching("Tiny", "the score of star", "cell", 2.0, 1.0, arrays, arrays)


def test_the_table_has_a_row_for_each_part() -> None:
    found = patching_of(conv1=[[0.1, 0.4]], head=0.3)
    assert found.table() == (
        PatchRow("conv1", (0, 0), 0.1, 0.1),
        PatchRow("conv1", (0, 1), 0.4, 0.4),
        PatchRow("head", (), 0.3, 0.3),
    )
    assert [row.share for row in found.table(2)] == [0.4, 0.3]


@pytest.mark.parametrize("shares", [0.5, [0.1, -0.2], [[0.1], [0.4]]])
def test_it_shows_itself(shares: object) -> None:
    found = patching_of(conv1=shares, conv2=shares)
    html = found._repr_html_()
    assert "conv2" in html
    assert "data:image/png" in html
    figure = found.figure()
    assert figure.get_suptitle() == "Tiny: the score of star, from 1.00 to 2.00"
