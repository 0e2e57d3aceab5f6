"""Draw the image with a window of it, enlarged until each pixel shows its numbers."""

from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.pixels import start_of
from hookviz.lessons.pictures import picture_of
from hookviz.ui.components.pixels import show_pixels


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw image and window; all that is done in them the browser does alone."""
    side = int(options["window"])
    show_pixels(picture_of(scene), start_of(scene, options), side, key=f"pixels-{key}")
