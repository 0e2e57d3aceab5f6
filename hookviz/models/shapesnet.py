"""Define ShapesNet, the small CNN for drawings, and the facts about its weights.

It tells drawn shapes and textures apart. `scripts.train_bundled` draws the data, trains it and
writes the weights, the figures and the model card in `assets/`.
"""

from torch import Tensor, nn

from hookviz.language.saying import mark
from hookviz.settings import ASSETS
from hookviz.types import Preprocess

SHAPES = (
    *("circle", "triangle", "square", "star", "cross"),
    *("ring", "heart", "arrow", "crescent", "flower"),
)
TEXTURES = (
    *(
        mark("horizontal stripes"),
        mark("vertical stripes"),
        mark("rising stripes"),
        mark("falling stripes"),
        "checks",
    ),
    *("dots", "waves", "grid", "gradient", "rainbow"),
)
CATEGORIES: tuple[str, ...] = SHAPES + TEXTURES
"""A label per class, in the order of the network's outputs."""

INPUT_SIZE = 128
"""Side in pixels of the images that it was trained on."""

MIN_SIZE = 32
"""The smallest height and width in pixels that the network is meant to take."""

PREPROCESS = Preprocess(
    resize=INPUT_SIZE, crop=INPUT_SIZE, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)
)
WEIGHTS_FILE = ASSETS / "bundled.safetensors"
FIGURES_FILE = ASSETS / "bundled.json"
"""What `scripts.train_bundled` measured; ``"accuracy"`` is top-1 in percent on unseen draws."""


class ConvNorm(nn.Sequential):
    """A convolution and its batch norm: ``(N, C, H, W)`` to ``(N, channels, H/stride, W/stride)``.

    The convolution has no bias, since the batch norm adds one.
    """

    def __init__(self, inputs: int, channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, channels, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels)


class Stem(nn.Module):
    """Large kernels on the image itself: ``(N, 3, H, W)`` to ``(N, channels, H/2, W/2)``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = ConvNorm(3, channels, kernel=7, stride=2)
        self.relu = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """Activations of at least 0, ``(N, channels, H/2, W/2)``."""
        rectified: Tensor = self.relu(self.first(images))
        return rectified


class ResidualStage(nn.Module):
    """Halves the image, then adds what two 3×3 convolutions find to a plain view of the input.

    ``(N, inputs, H, W)`` to ``(N, channels, H/2, W/2)``, sides rounded up. As in He et al., "Deep
    residual learning for image recognition" (2015), figure 5, with a projection shortcut.
    """

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self.first = ConvNorm(inputs, channels, kernel=3, stride=2)
        self.relu = nn.ReLU()
        self.second = ConvNorm(channels, channels, kernel=3)
        self.shortcut = ConvNorm(inputs, channels, kernel=1, stride=2)
        self.relu_out = nn.ReLU()

    def forward(self, activations: Tensor) -> Tensor:
        """Activations of at least 0, ``(N, channels, H/2, W/2)``."""
        residual = self.second(self.relu(self.first(activations)))
        rectified: Tensor = self.relu_out(residual + self.shortcut(activations))
        return rectified


class ShapesNet(nn.Module):
    """A residual CNN of ten convolutions for drawn shapes and textures, for any input size.

    ``(N, 3, H, W)``, normalised as `PREPROCESS` says, to one score per class, ``(N, classes)``.
    """

    def __init__(self, classes: int = len(CATEGORIES)) -> None:
        super().__init__()
        self.stem = Stem(32)
        self.stage1 = ResidualStage(32, 48)
        self.stage2 = ResidualStage(48, 96)
        self.stage3 = ResidualStage(96, 128)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(128, classes)

    def forward(self, images: Tensor) -> Tensor:
        """One score per class and image, ``(N, classes)``."""
        activations = self.stage3(self.stage2(self.stage1(self.stem(images))))
        scores: Tensor = self.head(self.flatten(self.pool(activations)))
        return scores
