"""Draw the image with a window of it, enlarged until each pixel shows its numbers."""

from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.pixels import AT, start_of, within
from hookviz.lessons.pictures import picture_of
from hookviz.ui.components.pixels import PickedPixel, show_pixels
from hookviz.ui.lessons.picks import pick, picked, remember_shown


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw image and window; the link keeps the pixel that is picked, which the text tells of."""
    start = start_of(scene, options)
    row, column = within(scene, *picked(key, "pixel", start))
    shade = min(max(0, picked(key, "shade", 0)), 3)
    remember_shown(key, {AT: f"{row},{column}"}, {AT: f"{start[0]},{start[1]}"})

    def take(new: PickedPixel) -> None:
        pick(key, "pixel", within(scene, new.row, new.column))
        pick(key, "shade", new.shade or "")

    show_pixels(
        picture_of(scene),
        PickedPixel(row, column, shade),
        int(options["window"]),
        take,
        key=f"pixels-{key}",
    )
