"""Define kernels made by hand, with their titles, and convolve a grey picture with one."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.language.saying import mark

Kernel = tuple[tuple[float, ...], ...]
"""Rows of weights, as many as columns."""

_NINTH = 1 / 9

PRESETS: Mapping[str, Kernel] = MappingProxyType(
    {
        "vertical": ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0)),
        "horizontal": ((-1.0, -2.0, -1.0), (0.0, 0.0, 0.0), (1.0, 2.0, 1.0)),
        "diagonal": ((-2.0, -1.0, 0.0), (-1.0, 0.0, 1.0), (0.0, 1.0, 2.0)),
        "outline": ((-1.0, -1.0, -1.0), (-1.0, 8.0, -1.0), (-1.0, -1.0, -1.0)),
        "blur": ((_NINTH,) * 3,) * 3,
        "sharpen": ((0.0, -1.0, 0.0), (-1.0, 5.0, -1.0), (0.0, -1.0, 0.0)),
        "copy": ((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
    }
)
"""By name; the first two are Sobel's, and the outline is a Laplacian."""

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "vertical": mark("Vertical edges"),
        "horizontal": mark("Horizontal edges"),
        "diagonal": mark("Diagonal edges"),
        "outline": mark("Outline"),
        "blur": mark("Blur"),
        "sharpen": mark("Sharpen"),
        "copy": mark("Copy"),
    }
)
"""What they are called on the page."""


def kernel_call(grey: NDArray[np.float32], kernel: Kernel, stride: int, padding: int) -> LayerCall:
    """Convolve a picture ``(H, W)`` with a kernel; return the map with all that made it.

    As conv layers do it, the kernel is not turned around: mathematics calls it cross-correlation.
    """
    weight = torch.tensor(kernel, dtype=torch.float32)[None, None]
    picture = torch.from_numpy(np.ascontiguousarray(grey))[None]
    padded = F.pad(picture, (padding,) * 4)
    return LayerCall(
        layer="kernel",
        kernel=weight,
        bias=None,
        padded=padded,
        corner=(padding, padding),
        size=(picture.shape[1], picture.shape[2]),
        stride=(stride, stride),
        dilation=(1, 1),
        groups=1,
        output=F.conv2d(padded[None], weight, stride=stride)[0],
        steps=(),
        rounding=1e-5,
    )


def same_size_map(kernel: Kernel, picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the map that a small kernel makes of a picture ``(H, W)``, as large as the picture.

    Beyond its edges the picture goes on as it ends there, so that its frame is no edge.
    """
    around = [size // 2 for size in (len(kernel), len(kernel[0]))]
    return (
        kernel_call(np.pad(picture, [(side, side) for side in around], "edge"), kernel, 1, 0)
        .output[0]
        .numpy()
    )


def fraction_text(weight: float) -> str:
    """Return a weight as people write it: ``"−1"``, ``"1/9"``."""
    return str(Fraction(weight).limit_denominator(100)).replace("-", "−")


def output_length(length: int, kernel: int, stride: int, padding: int) -> int:
    """Return how many rows a map has, of a picture of `length` rows; columns likewise."""
    return max(0, length + 2 * padding - kernel) // stride + 1
