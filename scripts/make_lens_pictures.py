"""Make the small pictures in `assets/lenses`: what each lens answers on a sample, taking its time.

``python -m scripts.make_lens_pictures`` needs minutes. The page shows one where the lens takes more
than a moment, or can't work on the image and network that are looked at. A lens whose answer is a
chart or a table has none.
"""

from typing import Any

import hookviz
from hookviz.drawing.panels import ImagePanel
from hookviz.images.samples import samples
from hookviz.lenses.contract.running import FOLDER, answer_of, list_lenses

# one that shows something
_CHANNEL: dict[str, dict[str, Any]] = {"maximize": {"layer": "features.7.expand3x3", "channel": 3}}


def main() -> None:
    """Write a JPEG file for each lens that draws a picture."""
    FOLDER.mkdir(exist_ok=True)
    model = hookviz.load_model("squeezenet")
    for lens in list_lenses():
        chosen = _CHANNEL.get(lens.slug, {})
        result = hookviz.run_lens(lens.slug, model, samples()[0].path, **chosen)
        if any(isinstance(panel, ImagePanel) for panel in result.panels):
            picture = answer_of(lens, result.panels).picture
            if picture.startswith(b"\xff\xd8"):
                (FOLDER / f"{lens.slug}.jpg").write_bytes(picture)


if __name__ == "__main__":
    main()
