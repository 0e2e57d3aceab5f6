"""Draw the grid that the page shows of a layer while nobody has chosen how."""

from torch import Tensor

from hookviz.drawing.grid import Grid, make_grid
from hookviz.types import Activation


def automatic_grid(activation: Activation | Tensor, *, dark: bool = False) -> Grid:
    """Draw signed values ``(C, H, W)`` diverging about zero, others from white or black on."""
    values = activation if isinstance(activation, Tensor) else activation.values
    if (values < 0).any():
        colormap = "berlin" if dark else "RdBu_r"
    else:
        colormap = "inferno" if dark else "gray_r"
    return make_grid(activation, scale="balanced", colormap=colormap)
