"""Convert pictures of 0…1 to the shape and the range of a network's inputs, and back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import HookVizError, ModelError
from hookviz.images.preprocess import pixel_values
from hookviz.language.saying import say
from hookviz.types import Model, Pixels, Preprocess
from hookviz.wording import times


@dataclass(frozen=True, eq=False)
class InputRange:
    """Range of a model's inputs from black to white, per channel.

    Attributes:
        low: ``(C, 1, 1)``, what 0 becomes.
        high: ``(C, 1, 1)``, what 1 becomes.
    """

    low: Tensor = field(repr=False)
    high: Tensor = field(repr=False)

    @classmethod
    def of(cls, model: Model, shape: Sequence[int]) -> "InputRange":
        """Return the range of a model's own preprocessing.

        A function is asked: by what it makes of a black and of a white picture.
        """
        if isinstance(model.preprocess, Preprocess):
            mean, std = (
                torch.tensor(numbers)[:, None, None]
                for numbers in (model.preprocess.mean, model.preprocess.std)
            )
            if len(mean) == shape[0]:
                return cls(-mean / std, (1 - mean) / std)
            return cls(torch.zeros(shape[0], 1, 1), torch.ones(shape[0], 1, 1))
        ends = []
        for level in (0, 255):
            flat = Image.new("RGB", (shape[2], shape[1]), (level,) * 3)
            tensor = pixel_values(model.preprocess(flat))
            ends.append(tensor.float().reshape(shape[0], -1).mean(1)[:, None, None])
        return cls(*ends)

    def to_input(self, pictures: Tensor) -> Tensor:
        """Convert pictures of 0…1, ``(N, C, H, W)``, to inputs of the network."""
        low, high = (end.to(pictures.device) for end in (self.low, self.high))
        return low + pictures * (high - low)

    def to_picture(self, inputs: Tensor) -> Tensor:
        """Convert inputs back to pictures, within black and white."""
        span = self.high - self.low
        return ((inputs.cpu() - self.low) / torch.where(span == 0, 1, span)).clamp(0, 1)


def picture_shape(model: Model, size: int | None) -> tuple[int, int, int]:
    """Return ``(C, H, W)`` of pictures: `size` pixels a side where a model takes that, or its own.

    A network that is made for one size, by its last layers, gets that size.

    Raises:
        HookVizError: the model takes no pictures in grey or in red, green and blue.
    """
    own = own_shape(model)
    if len(own) != 3 or own[0] not in (1, 3):
        raise HookVizError(
            say(
                "{model} takes {shape}, which is no picture in grey (1×H×W) or in red, green "
                "and blue (3×H×W): there is nothing to draw for it.",
                model=model.title,
                shape=times(own),
            )
        )
    if size is None or model.input_shape:
        return own[0], own[1], own[2]
    wanted = own[0], max(size, model.min_size), max(size, model.min_size)
    try:
        layer_trace(model, wanted)
    except ModelError:
        return own[0], own[1], own[2]
    return wanted


def pixels(pictures: Tensor) -> tuple[Pixels, ...]:
    """Convert pictures of 0…1, ``(N, C, H, W)``, to RGB, uint8, ``(H, W, 3)`` each."""
    levels = (pictures.detach().cpu().clamp(0, 1) * 255).round().to(torch.uint8)
    colour = levels.expand(-1, 3, -1, -1) if levels.shape[1] == 1 else levels
    return tuple(np.ascontiguousarray(picture.movedim(0, -1).numpy()) for picture in colour)
