"""Make the baseline that stands for missing input in attributions: a colour, or the input blurred.

No input is without information, so the choice of a baseline decides the attribution (Sturmfels,
Lundberg and Lee, "Visualizing the Impact of Feature Attribution Baselines", 2020).
"""

import torch
from torch import Tensor
from torchvision.transforms import functional as F  # its name everywhere

from hookviz.errors import SettingError
from hookviz.language.saying import mark, say
from hookviz.types import Model, ModelInput, Preprocess
from hookviz.wording import times

BASELINES = (mark("zero"), mark("grey"), mark("black"), mark("blurred"))
"""The kinds of baseline; the first is the default.

- zero: 0 in the network's input, which is the mean colour that the preprocessing takes off.
- grey, black: that colour, brought to the network's input by the preprocessing.
- blurred: the input under a Gaussian, whose deviation is a sixteenth of the shorter side.
"""

LEVELS = {"grey": 0.5, "black": 0.0}
"""Of the baselines that are a colour, the level in each channel of the image, 0…1."""


def baseline_of(model: Model, model_input: ModelInput, kind: str) -> Tensor:
    """Make the baseline of an input, of its shape and type, ``(1, C, H, W)``.

    Raises:
        SettingError: a colour, where it is not known how the network takes in colours; or any but
            zero of an input that is no image.
    """
    image = model_input.tensor
    if kind == "zero":
        return torch.zeros_like(image)
    if image.ndim != 4:
        raise SettingError(
            say(
                "baseline={kind!r} is of images, and {model} takes {shape}. 'zero' works.",
                kind=kind,
                model=model.title,
                shape=times(image.shape[1:]),
            )
        )
    if kind == "blurred":
        return blurred(image)
    steps = model.preprocess
    if not isinstance(steps, Preprocess) or len(steps.mean) != image.shape[1]:
        raise SettingError(
            say(
                "baseline={kind!r} is a colour, and how {model} takes in colours is not "
                "known: it prepares its images with a function of its own. 'zero' and "
                "'blurred' work.",
                kind=kind,
                model=model.title,
            )
        )
    levels = [(LEVELS[kind] - mean) / std for mean, std in zip(steps.mean, steps.std, strict=True)]
    colour = torch.tensor(levels, dtype=image.dtype)
    return colour.view(1, -1, 1, 1).expand_as(image).clone()


def blurred(image: Tensor) -> Tensor:
    """Blur an image, rows and columns one after the other, by a sixteenth of its shorter side."""
    rows, columns = image.shape[2:]
    deviation = min(rows, columns) / 16
    reach = [min(side - 1, round(3 * deviation)) for side in (columns, rows)]  # three deviations
    across = F.gaussian_blur(image, [2 * reach[0] + 1, 1], deviation)
    smooth: Tensor = F.gaussian_blur(across, [1, 2 * reach[1] + 1], deviation)
    return smooth
