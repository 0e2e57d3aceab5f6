import pytest

from hookviz.lessons.kernels import PRESETS
from hookviz.ui.components.kernel_editor import EditedKernel, read_kernel, written_kernel

OWN = ((1.0, -2.5, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.125))


def test_a_kernel_is_read_as_it_was_written() -> None:
    edited = EditedKernel(OWN, 2, 1, "")
    assert read_kernel(written_kernel(edited), PRESETS) == edited
    name, kernel = next(iter(PRESETS.items()))
    preset = EditedKernel(kernel, 1, 0, name)
    assert read_kernel(written_kernel(preset), PRESETS) == preset


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "[1,2,3,4]",
        '[[[1,2],[3]],1,0,""]',
        '[[[1e9]],1,0,""]',
        '[[["x"]],1,0,""]',
        '[[],1,0,"nobody\'s"]',
        '[[[1]],9,0,""]',
        '[[[1]],1,0,{"a":1}]',
        "[" * 5000,
    ],
)
def test_any_other_text_is_no_kernel(text: str) -> None:
    assert read_kernel(text, PRESETS) is None


@pytest.mark.parametrize("weight", [1_000_000.0, -1_000_000.0, 123_456.0, 0.001234567])
def test_a_weight_counts_as_it_was_typed(weight: float) -> None:
    kernel = ((weight, 0.0, 0.0), *OWN[1:])
    read = read_kernel(written_kernel(EditedKernel(kernel, 1, 0, "")), PRESETS)
    assert read is not None
    assert read.kernel[0][0] == weight


def test_a_large_kernel_fits_into_a_link() -> None:
    kernel = tuple(
        tuple(-1.23456789 / (1 + row + column) for column in range(7)) for row in range(7)
    )
    assert len(written_kernel(EditedKernel(kernel, 1, 0, ""))) < 600
