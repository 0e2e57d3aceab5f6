"""Compute a network's input from a picture that was changed after it was cut to size."""

from dataclasses import replace

import numpy as np
from PIL import Image
from torchvision.transforms import functional as F  # its name everywhere

from hookviz.errors import HookVizError
from hookviz.images.preprocess import from_tensor
from hookviz.language.saying import say
from hookviz.types import Model, ModelInput, Pixels, Preprocess


def check_repaints(model: Model, model_input: ModelInput) -> tuple[Preprocess, Pixels]:
    """Return the model's own steps and the picture of its input; refuse where one is missing.

    Raises:
        HookVizError: the model makes its input by a function of its own, or there is no picture.
    """
    steps, picture = model.preprocess, model_input.picture
    if not isinstance(steps, Preprocess):
        raise HookVizError(
            say(
                "{model} makes its input by a function of its own, so a changed picture can't be "
                "given to it. The models of the list can take one.",
                model=model.title,
            )
        )
    if picture is None:
        raise HookVizError(
            say(
                "The input of {model} was given as a tensor, so there is no picture of it to "
                "change.{hint}",
                model=model.title,
                hint=say(" Give the image that it was made of.")
                if len(model.input_shape) in {0, 3} and steps.channels in {1, 3}
                else "",
            )
        )
    return steps, picture


def repainted(model: Model, model_input: ModelInput, picture: Pixels) -> ModelInput:
    """Return the input with `picture`, RGB uint8 ``(H, W, 3)`` of any size, in place of its own.

    The same picture gives the same tensor to the bit: what is left of the model's own steps once an
    image is cut is to divide by 255 and to normalise.

    Raises:
        HookVizError: as `check_repaints` does.
    """
    steps, _ = check_repaints(model, model_input)
    image = Image.fromarray(picture)
    if steps.channels == 1:
        image = image.convert("L")
    levels = F.convert_image_dtype(F.pil_to_tensor(image))
    repainted_input = from_tensor(F.normalize(levels, mean=list(steps.mean), std=list(steps.std)))
    shown = np.array(picture)
    shown.setflags(write=False)
    return replace(repainted_input, picture=shown, crop=model_input.crop)
