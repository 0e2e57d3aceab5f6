"""A folder that is no atlas is refused, and nothing in one is believed or executed."""

import json
import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

import hookviz
from hookviz.atlas import files
from hookviz.errors import HookVizError
from hookviz.images.samples import samples
from hookviz.models.shapesnet import CATEGORIES
from hookviz.settings import settings
from hookviz.types import Model
from scripts.make_atlases import NETWORKS
from tests.atlas.folders import save_folder
from tests.networks import Tiny, as_model
from tests.pictures import encoded, picture


@pytest.fixture
def folder(tiny: Model, tmp_path: Path) -> Path:
    for number, name in enumerate(("a", "b")):
        save_folder(tmp_path / "photos" / name, 3, first=5 * number)
    target = tmp_path / "a.atlas"
    hookviz.make_atlas(tiny, tmp_path / "photos", target, top=3)
    return target


def look_at_all(folder: Path) -> None:
    """Read all that can be read in an atlas."""
    atlas = hookviz.load_atlas(folder)
    for layer, channels in atlas.layers.items():
        atlas.first_patches(layer)
        atlas.statistics(layer).edges(0)
        for channel in range(channels):
            for entry in atlas.top_activations(layer, channel):
                atlas.picture(entry.image)
    for name in atlas.classes:
        atlas.channels_of_class(name)
    for image in atlas.images:
        atlas.channels_of_image(image.digest)


def said(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """What changes the JSON of an atlas."""

    def apply(folder: Path) -> None:
        about = json.loads((folder / "atlas.json").read_text())
        change(about)
        (folder / "atlas.json").write_text(json.dumps(about))

    return apply


def counted(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """What changes the numbers of an atlas."""

    def apply(folder: Path) -> None:
        numbers = load((folder / "numbers.safetensors").read_bytes())
        change(numbers)
        (folder / "numbers.safetensors").write_bytes(save(numbers))

    return apply


def shortened(name: str, share: float) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(share * len(data))])

    return apply


def fifo(folder: Path) -> None:
    (folder / "patches.bin").unlink()
    os.mkfifo(folder / "patches.bin")


def put(name: str, at: Any, value: Any) -> Callable[[Path], None]:
    return counted(lambda numbers: numbers[name].__setitem__(at, value))


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing": (shutil.rmtree, "is not there"),
    "no JSON": (lambda f: (f / "atlas.json").unlink(), "atlas.json is missing"),
    "no numbers": (lambda f: (f / "numbers.safetensors").unlink(), "is missing"),
    "a pipe": (fifo, "a pipe"),
    "half a JSON": (shortened("atlas.json", 0.5), "no JSON, or not all of it"),
    "half the numbers": (shortened("numbers.safetensors", 0.5), "truncated"),
    "half the patches": (shortened("patches.bin", 0.5), "patches.bin is truncated"),
    "a list": (lambda f: (f / "atlas.json").write_text("[1]"), "says no form"),
    "nesting": (lambda f: (f / "atlas.json").write_text("[" * 200_000), "no JSON"),
    "a pickle": (lambda f: (f / "numbers.safetensors").write_bytes(pickle.dumps(f)), "truncated"),
    "newer": (said(lambda a: a.update(form=2, hookviz="9.9")), "made by HookViz 9.9"),
    "form true": (said(lambda a: a.update(form=True)), "says no form"),
    "top": (said(lambda a: a.update(top=2)), "should be float32 of"),
    "a top without end": (said(lambda a: a.update(top=10**30)), "no number of something"),
    "a size": (said(lambda a: a.update(size=-1)), "mean nothing"),
    "a patch of a million": (said(lambda a: a.update(patch=10**6)), "mean nothing"),
    "images": (said(lambda a: a["images"].pop()), "leads nowhere|another image"),
    "a name that is none": (said(lambda a: a["images"][0].update(name=7)), "no text"),
    "a long name": (said(lambda a: a["images"][0].update(name="x" * 5000)), "too long"),
    "a layer more": (said(lambda a: a["layers"].append(a["layers"][0])), "where they should be"),
    "channels": (said(lambda a: a["layers"][1].update(channels=10**9)), "should be"),
    "classes": (said(lambda a: a["classes"].pop()), "class_maximum"),
    "counts": (said(lambda a: a.update(counts=None)), "counts are missing"),
    "no values": (counted(lambda n: n.pop("value")), "value is missing"),
    "other types": (counted(lambda n: n.update(cell=n["cell"].astype(float))), "cell is float64"),
    "an image beyond": (put("image", (0, 0), 99), "leads nowhere"),
    "an image before": (put("image", (0, 0), -2), "leads nowhere"),
    "a patch beyond": (put("patch", (0, 0), 10**6), "leads nowhere"),
    "a patch of another": (
        counted(lambda n: n.update(patch=np.roll(n["patch"], 1, axis=0))),
        "another image",
    ),
    "starts that go back": (put("patch_start", 1, 10**9), "one after another"),
    "a start before": (put("patch_start", 0, -5), "one after another"),
    "bins without end": (put("exponent", 0, 20_000), "no such bins"),
    "a box beyond": (put("patch_box", (0, 2), 10**6), "outside of its image"),
    "a box inside out": (put("patch_box", (0, 0), 10**6), "outside of its image"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_atlas_is_refused(kind: str, folder: Path) -> None:
    change, says = HOSTILE[kind]
    look_at_all(folder)
    change(folder)
    with pytest.raises(HookVizError, match=says):
        look_at_all(folder)


@pytest.mark.parametrize("name", ["atlas.json", "numbers.safetensors", "patches.bin"])
def test_damage_anywhere_is_an_error_of_ours_or_harmless(name: str, folder: Path) -> None:
    file = folder / name
    data = file.read_bytes()
    step = max(1, len(data) // 60)
    for place in range(0, len(data), step):
        file.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            look_at_all(folder)
        except HookVizError:
            continue


def test_no_file_outside_of_the_atlass_folder_is_found(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path.parent / f"{tmp_path.name}.png"
    secret.write_bytes((tmp_path / "photos" / "a" / "000.png").read_bytes())
    (tmp_path / "link.png").symlink_to(secret)
    atlas = hookviz.load_atlas(folder)
    assert atlas.picture(atlas.images[0]) == tmp_path / "photos" / "a" / "000.png"
    for path in (f"../{secret.name}", str(secret), "link.png", "a\0b", "x" * 4000, "/etc/passwd"):

        def elsewhere(about: dict[str, Any], path: str = path) -> None:
            about["images"][0].update(path=path)

        said(elsewhere)(folder)
        atlas = hookviz.load_atlas(folder)
        assert atlas.picture(atlas.images[0]) is None


def test_names_are_whole_and_files_that_are_not_there_are_errors(folder: Path) -> None:
    said(lambda a: a["images"][0].update(name="\ud800.png"))(folder)
    assert hookviz.load_atlas(folder).images[0].name == "?.png"
    with pytest.raises(HookVizError, match=r"Did you mean 'a.atlas'\?"):
        hookviz.load_atlas(folder.with_name("b.atlas"))
    atlas = hookviz.load_atlas(folder)
    (folder / "patches.bin").unlink()
    with pytest.raises(HookVizError, match="can't be read"):
        atlas.top_activations("conv1", 0)


def forget() -> None:
    """Settings and atlases are read once a process; here anew for each test."""
    settings.cache_clear()
    files._read.cache_clear()


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    forget()


def start_with(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    monkeypatch.setenv("HOOKVIZ_ATLAS", os.pathsep.join(map(str, paths)))
    forget()


def made(model: hookviz.Model, folder: Path, name: str) -> Path:
    images = folder / "images"
    images.mkdir(exist_ok=True)
    for number in range(3):
        (images / f"{number}.png").write_bytes(encoded(picture(number), "PNG"))
    hookviz.make_atlas(model, images, folder / name, top=2)
    return folder / name


@pytest.mark.parametrize("name", NETWORKS)
def test_the_cnns_in_the_box_have_an_atlas_that_shows_their_values(name: str) -> None:
    model = hookviz.load_model(name)
    atlas: Any = files.atlas_of(model)
    assert atlas.layers == {
        layer.name: layer.output_shape[0] for layer in hookviz.list_layers(model)
    }
    assert set(atlas.classes) == {*CATEGORIES, "photograph"}
    ours = {hookviz.read_image(sample.path).digest: sample.path for sample in samples()}
    last = list(atlas.layers)[-1]
    for channel in (0, 17):
        for entry in atlas.top_activations(last, channel):
            file: Any = ours.get(entry.image.digest) or atlas.picture(entry.image)
            image = hookviz.read_image(file)
            assert image.digest == entry.image.digest
            values = hookviz.capture(model, image, last)[last].values[channel]
            assert abs(float(values[entry.cell]) - entry.value) < 1e-5 * float(values.abs().max())
            assert float(values.max()) == float(values[entry.cell])
    for layer in atlas.layers:
        assert all(patch is not None for patch in atlas.first_patches(layer))
    assert files.atlas_of(hookviz.load_model(name, "random")) is None


def test_those_it_was_started_with_come_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, other = as_model(Tiny()), hookviz.load_model("shapesnet")
    paths = [made(model, tmp_path, "tiny.atlas"), made(other, tmp_path, "own.atlas")]
    start_with(monkeypatch, *paths)
    for each, path in zip((model, other), paths, strict=True):
        atlas: Any = files.atlas_of(each)
        assert atlas.path == path
    with torch.no_grad():
        changed = Tiny()
        next(changed.parameters()).add_(1)
    assert files.atlas_of(as_model(changed)) is None


def test_one_that_cannot_be_read_is_left_out_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = made(as_model(Tiny()), tmp_path, "good.atlas")
    broken = tmp_path / "broken.atlas"
    shutil.copytree(good, broken)
    (broken / "atlas.json").write_text("{")
    start_with(monkeypatch, broken, good)
    with caplog.at_level(logging.WARNING, "hookviz"):
        assert files.known_atlases()[0].path == good
    assert "broken.atlas" in caplog.text


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
