import json
import re
import subprocess
import sys
from pathlib import Path

import hookviz
from hookviz.types import Model
from tests.atlas.folders import save_folder

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "atlas.md"


def test_ten_lines_read_it_without_hookviz(tiny: Model, tmp_path: Path) -> None:
    """Those of docs/atlas.md, in a Python that can't import HookViz."""
    save_folder(tmp_path / "photos", 5)
    atlas = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "photos.atlas", top=4)
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.S | re.M)
    [code] = [block for block in blocks if "load_file" in block]
    assert len(code.strip().splitlines()) - code.count("\nimport ") - code.count("\nfrom ") <= 10
    assert "hookviz" not in code
    mine = code.replace('"layer3.0.conv1"', '"conv2"').replace("+ 80", "+ 3")
    blocked = "import sys; sys.modules['hookviz'] = None\n"
    run = subprocess.run(
        [sys.executable, "-c", blocked + mine],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    expected = [
        f"{entry.value:.4f} {entry.image.name} {entry.patch.shape[1::-1]}"
        for entry in atlas.top_activations("conv2", 3)
        if entry.patch is not None
    ]
    said = [line.split(maxsplit=1) for line in run.stdout.splitlines()]
    assert [f"{float(value):.4f} {rest}" for value, rest in said] == expected


def test_every_array_is_documented_and_images_elsewhere_have_no_way(
    tiny: Model, tmp_path: Path
) -> None:
    save_folder(tmp_path / "photos", 2)
    atlas = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "photos.atlas")
    text = DOCUMENT.read_text("utf-8")
    about = json.loads((atlas.path / "atlas.json").read_text())
    for name in {*about, *about["layers"][0], *about["images"][0]} - {"hookviz", "names"}:
        assert f"`{name}`" in text, name
    for name in atlas._numbers:
        assert f"`{name}`" in text, name
    save_folder(tmp_path / "photos", 2)
    (tmp_path / "out").mkdir()
    atlas = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "out" / "a.atlas")
    assert {image.path for image in atlas.images} == {""}
    assert str(tmp_path) not in (atlas.path / "atlas.json").read_text()
    assert atlas.picture(atlas.images[0]) is None
