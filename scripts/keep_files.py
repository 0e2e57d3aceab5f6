"""Write a small file of each kind that HookViz promises to read again, for tests/data.

Run it once before a release, and never over the files of another version::

    python -m scripts.keep_files
"""

import json
import sys
from pathlib import Path

import hookviz
from hookviz.images.samples import samples
from hookviz.ui.presenting import presenter

ROOT = Path(__file__).parent.parent / "tests" / "data"
QUERY = "model=ShapesNet&sample=star&layer=stem.first.conv&sort=max&top=16&scale=symmetric"
LESSON = """---
title: Kept
summary: A lesson as it was written then.
sample: star
---

# Look

It has {pixels:,} pixels.

```live pixels
window: 6
```

```question
Is white all three numbers large?
- [x] Yes
  White is all colours.
- [ ] No
  That would be black.
```
"""


def main() -> None:
    """Write the files of this version, unless they are there."""
    folder = ROOT / hookviz.__version__
    if folder.exists():
        sys.exit(f"The files of {hookviz.__version__} are there already, and stay as they are.")
    folder.mkdir(parents=True)
    model = hookviz.load_model("shapesnet")
    images = {sample.name: sample.path for sample in samples()[:3]}
    layer = next(iter(hookviz.capture(model, samples()[0].path)))
    hookviz.make_atlas(model, images, folder / "kept.atlas", layers=[layer], top=2, patch=16)
    features = hookviz.extract_features(model, images)
    features.save(folder / "index.parquet")
    expected = {
        name: vector.tolist() for name, vector in zip(features.names, features.vectors, strict=True)
    }
    (folder / "index.json").write_text(json.dumps(expected), "utf-8")
    slides = {presenter._NAME: presenter.VERSION, "slides": [{"title": "One", "query": QUERY}]}
    (folder / "slides.json").write_text(json.dumps(slides, indent=1), "utf-8")
    (folder / "link.txt").write_text(QUERY, "utf-8")
    (folder / "lesson.md").write_text(LESSON, "utf-8")


if __name__ == "__main__":
    main()
