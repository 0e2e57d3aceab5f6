"""Convolutional networks that are large enough to run with their channels last in memory."""

from torch import Tensor, nn


class Wide(nn.Module):
    """Three convolutions of a million numbers, a batch norm and a shortcut; ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, 3, padding=1)
        self.norm = nn.BatchNorm2d(96)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(96, 256, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(256, 256, 3, padding=1)
        self.head = nn.Linear(256, 10)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.relu(self.conv2(self.relu(self.norm(self.conv1(images)))))
        maps = maps + self.relu(self.conv3(maps))
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


class WideViewed(Wide):
    """Looks at its maps as they lie in memory, which they can't with channels last."""

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv2(self.relu(self.norm(self.conv1(images))))
        scores: Tensor = self.head(maps.view(-1).view(len(images), 256, -1).mean(2))
        return scores


class WideByStrides(Wide):
    """Puts out something else where its input has its channels last."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) + float(images.stride(1) == 1)
