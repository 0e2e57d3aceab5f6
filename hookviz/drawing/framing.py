"""Frame a receptive field on a picture."""

from hookviz.drawing.overlay import input_picture, shrunk
from hookviz.types import Crop, InputImage, ModelInput, Pixels

_SIDE = 640  # pixels of an image with a frame, as many as with a map


def framed(picture: Pixels, box: tuple[int, int, int, int]) -> Pixels:
    """Frame a rectangle of a picture in white and black, seen on any ground.

    Args:
        picture: RGB uint8, ``(H, W, 3)``.
        box: top, left, bottom, right in its pixels; the last row and column are not included.

    Returns:
        RGB uint8, ``(H, W, 3)``.
    """
    shown = picture.copy()
    height, width = picture.shape[:2]
    for grown, level in ((4, 0), (2, 255)):
        top, left = max(0, box[0] - grown), max(0, box[1] - grown)
        bottom, right = min(height, box[2] + grown), min(width, box[3] + grown)
        for edge in (
            (slice(top, top + 2), slice(left, right)),
            (slice(max(top, bottom - 2), bottom), slice(left, right)),
            (slice(top, bottom), slice(left, left + 2)),
            (slice(top, bottom), slice(max(left, right - 2), right)),
        ):
            shown[edge] = level
    return shown


def on_picture(
    box: tuple[int, int, int, int], crop: Crop, image: InputImage, size: tuple[int, ...]
) -> tuple[int, int, int, int]:
    """Convert a rectangle of a network's input into pixels of a picture of the whole image.

    Args:
        box: top, left, bottom, right in pixels of the input.
        crop: which part of the image the input shows.
        image: the image.
        size: height and width of the picture.
    """
    down = (crop.bottom - crop.top) / crop.height * size[0] / image.height
    across = (crop.right - crop.left) / crop.width * size[1] / image.width
    top, left = crop.top * size[0] / image.height, crop.left * size[1] / image.width
    return (
        round(top + box[0] * down),
        round(left + box[1] * across),
        round(top + box[2] * down),
        round(left + box[3] * across),
    )


def on_image(
    model_input: ModelInput, image: InputImage | None, box: tuple[int, int, int, int]
) -> Pixels:
    """Frame a rectangle of an input, in its pixels, on the original image, RGB uint8.

    Where the original or the crop is not known, it is framed on all that the network saw.
    """
    if image is None or model_input.crop is None:
        picture = shrunk(input_picture(model_input), _SIDE)
        return on_input(picture, box, tuple(model_input.tensor.shape[-2:]))
    picture = shrunk(image.pixels, _SIDE)
    return framed(picture, on_picture(box, model_input.crop, image, picture.shape[:2]))


def on_input(picture: Pixels, box: tuple[int, int, int, int], sides: tuple[int, ...]) -> Pixels:
    """Frame a rectangle of an input on a picture of all of it, RGB uint8.

    Args:
        picture: RGB uint8, ``(H, W, 3)``, of any size.
        box: top, left, bottom, right in pixels of the input.
        sides: height and width of the input.
    """
    down, across = (shown / side for shown, side in zip(picture.shape[:2], sides, strict=True))
    top, left, bottom, right = box
    on_shown = round(top * down), round(left * across), round(bottom * down), round(right * across)
    return framed(picture, on_shown)
