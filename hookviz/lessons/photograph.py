"""The lesson's image with a map over it, or a cell's receptive field framed on it."""

from hookviz.drawing.framing import framed, on_input, on_picture
from hookviz.drawing.overlay import input_picture, laid_over, over_input, shrunk
from hookviz.explaining.receptive_field import Box, ReceptiveField, receptive_fields
from hookviz.lessons.part import Scene
from hookviz.types import Pixels

_SIDE = 480  # pixels of the picture's longer side


def photograph(
    scene: Scene,
    colours: Pixels | None = None,
    box: Box | None = None,
    *,
    opacity: float = 0.6,
) -> Pixels:
    """The image, RGB uint8 ``(h, w, 3)``, or what the network got where no more is known.

    Args:
        scene: whose image.
        colours: a map's colours, ``(rows, columns, 3)``, to lay over what the network sees of it.
        box: top, left, bottom, right in pixels of the network's input, to be framed.
        opacity: of the map, 0…1.
    """
    made, image = scene.model_input, scene.image
    if made.crop is None:
        picture = shrunk(input_picture(made), _SIDE)
        if colours is not None:
            picture = over_input(made, colours, opacity=opacity)
        sides = tuple(made.tensor.shape[2:])
        return picture if box is None else on_input(picture, box, sides)
    picture = shrunk(image.pixels, _SIDE)
    if colours is not None:
        picture = laid_over(picture, colours, made.crop, image.pixels.shape, opacity=opacity)
    if box is not None:
        picture = framed(picture, on_picture(box, made.crop, image, picture.shape[:2]))
    return picture


def field_of(scene: Scene, address: str) -> ReceptiveField | None:
    """How far each cell of a layer sees; None where that is not known."""
    shape = tuple(scene.model_input.tensor.shape[1:])
    return receptive_fields(scene.model, shape).get(address)
