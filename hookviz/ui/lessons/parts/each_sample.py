"""Draw the samples, each with what the network says of it."""

from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.sample_scores import verdicts
from hookviz.ui.lessons.picture_strip import show_strip


def show(scene: LessonScene, options: Options, _key: str) -> None:
    """Draw them side by side."""
    show_strip(verdicts(scene, options["pictures"]))
