"""Make the site's article with the explorer in it, as one file that two frames show."""

from pathlib import Path

import hookviz
from hookviz.images.samples import samples

_TEXT = Path(__file__).with_name("article.html")
_LAYERS = ("stem.first.conv", "stage2.first.conv", "stage3.second.conv")


def write_article(folder: Path) -> None:
    """Write ``index.html``, and ``star.html`` beside it, which its frames show."""
    folder.mkdir(parents=True, exist_ok=True)
    image = next(each.path for each in samples() if each.name == "star")
    capture = hookviz.capture(hookviz.load_model("shapesnet"), image, _LAYERS)
    hookviz.save_page(capture, folder / "star.html", image=image)
    strongest = int(capture[_LAYERS[0]].values.amax((1, 2)).argmax())
    text = _TEXT.read_text("utf-8")
    for word, value in (("FIRST", _LAYERS[0]), ("LAST", _LAYERS[-1]), ("CHANNEL", strongest)):
        text = text.replace(word, str(value))
    (folder / "index.html").write_text(text, "utf-8")
