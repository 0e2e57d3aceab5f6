"""A capture as a file: what is in it, what is refused, and how large it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import hookviz
from hookviz.images.samples import samples
from hookviz.standalone.saving import MOST_BYTES
from tests.networks import Tiny, as_model, random_input, seeded
from tests.standalone.pages import unpacked

SAMPLE = next(each for each in samples() if each.name == "star").path
FIRST = "stem.first.conv"


@pytest.fixture(scope="module")
def model() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


@pytest.fixture(scope="module")
def capture(model: hookviz.Model) -> hookviz.Capture:
    return hookviz.capture(model, SAMPLE, [FIRST, "stage3.second.conv"])


def blocks_of(file: Path) -> dict[str, str]:
    found = {}
    for part in file.read_text("utf-8").split('<script type="application/octet-stream" id="')[1:]:
        name, _, rest = part.partition('">')
        found[name] = rest.partition("</script>")[0]
    return found


def test_layers_of_the_capture_or_those_named_are_on_the_page(
    capture: hookviz.Capture, tmp_path: Path
) -> None:
    file = hookviz.save_page(capture, tmp_path / "star.html")
    assert file == tmp_path / "star.html"
    blocks = blocks_of(file)
    page = unpacked(blocks["page"])
    assert page["names"] == list(capture)
    assert page["head"]["image"].startswith("input of 3×128×128")
    assert {"values-0", "cells-1", "channels-1", "layer-1"} <= blocks.keys()
    assert "input-0" not in blocks
    file = tmp_path / "star.html"
    hookviz.save_page(capture, str(file), image=SAMPLE, layers=FIRST, sums=[FIRST])
    blocks = blocks_of(file)
    page = unpacked(blocks["page"])
    assert (page["names"], page["head"]["image"]) == ([FIRST], "star.jpg")
    assert page["photograph"]["crop"] is not None
    assert {"input-0", "weights-0"} <= blocks.keys()
    assert not {"cells-0", "values-1"} & blocks.keys()


def test_no_pass_is_run_again(
    capture: hookviz.Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: Any, **_options: Any) -> None:
        raise AssertionError("a pass was run")

    hookviz.save_page(capture, tmp_path / "warm.html", layers=FIRST)  # which traces the network
    monkeypatch.setattr("hookviz.capturing.engine.run", fail)
    few = hookviz.save_page(capture, tmp_path / "few.html", layers=FIRST)
    assert few.read_bytes() == (tmp_path / "warm.html").read_bytes()


def test_a_network_of_one_s_own_and_a_tensor_are_saved(tmp_path: Path) -> None:
    own = as_model(seeded(Tiny))
    file = hookviz.save_page(hookviz.capture(own, random_input(1)), tmp_path / "own.html")
    page = unpacked(blocks_of(file)["page"])
    assert page["names"] == ["conv1", "conv2"]
    assert page["photograph"]["crop"] == {"top": 0, "left": 0, "bottom": 1, "right": 1}


def test_blocks_of_ones_own_sound_and_volumes_are_saved(tmp_path: Path) -> None:
    own = as_model(seeded(Tiny))
    seen = hookviz.capture(own, random_input(1), ["conv1", "relu", "head"])
    file = hookviz.save_page(seen, tmp_path / "own.html")
    assert unpacked(blocks_of(file)["page"])["names"] == ["conv1", "relu"]
    sound = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv1d(1, 3, 5))))
    seen = hookviz.capture(sound, torch.rand(1, 1, 64))
    page = unpacked(blocks_of(hookviz.save_page(seen, tmp_path / "sound.html"))["page"])
    assert page["names"] == ["0"]
    volume = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv3d(1, 3, 3))))
    seen = hookviz.capture(volume, torch.rand(1, 1, 8, 8, 8))
    page = unpacked(blocks_of(hookviz.save_page(seen, tmp_path / "volume.html"))["page"])
    assert page["photograph"]["crop"] is None


def test_a_page_that_is_too_large_names_the_layers_to_leave_out(
    capture: hookviz.Capture, tmp_path: Path
) -> None:
    whole = hookviz.save_page(capture, tmp_path / "star.html").stat().st_size
    small = tmp_path / "small.html"
    with pytest.raises(hookviz.HookVizError, match=f"Without {FIRST} it takes") as raised:
        hookviz.save_page(capture, small, most_bytes=whole - 1)
    assert "--most-bytes" in str(raised.value)
    assert not small.exists()
    hookviz.save_page(capture, small, most_bytes=whole - 1, layers="stage3.second.conv")
    with pytest.raises(hookviz.HookVizError, match="The first 1 of 2 layers take"):
        hookviz.save_page(capture, small, most_bytes=10_000)


REFUSED: list[tuple[dict[str, Any], type[hookviz.HookVizError], str]] = [
    ({"path": "star.pdf"}, hookviz.SettingError, "does not end in .html"),
    ({"path": "nowhere/star.html"}, hookviz.SettingError, "can't be written"),
    ({"layers": ["stem.first.conf"]}, hookviz.UnknownLayerError, "Did you mean 'stem.first.conv'"),
    ({"sums": "stage1.first.conv"}, hookviz.UnknownLayerError, "layer in this page"),
    ({"image": Image.new("RGB", (8, 8))}, hookviz.ImageError, "8×8 px"),
    ({"image": b"no image"}, hookviz.ImageError, "image"),
    ({"atlas": "squeezenet"}, hookviz.HookVizError, "digest"),
]


@pytest.mark.parametrize(("given", "kind", "words"), REFUSED)
def test_what_can_not_be_saved_is_refused(
    capture: hookviz.Capture,
    tmp_path: Path,
    given: dict[str, Any],
    kind: type[hookviz.HookVizError],
    words: str,
) -> None:
    given = dict(given)
    path = tmp_path / given.pop("path", "star.html")
    if "atlas" in given:
        given["atlas"] = hookviz.load_atlas(f"assets/atlases/{given['atlas']}.atlas")
    with pytest.raises(kind, match=words):
        hookviz.save_page(capture, path, **given)
    assert not path.exists()


def test_a_capture_without_maps_and_a_stop_leave_no_file(
    tmp_path: Path, capture: hookviz.Capture
) -> None:
    own = as_model(seeded(Tiny))
    seen = hookviz.capture(own, random_input(1), "head")
    with pytest.raises(hookviz.HookVizError, match="no layer that puts out maps"):
        hookviz.save_page(seen, tmp_path / "own.html")

    def stop(_share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hookviz.save_page(capture, tmp_path / "star.html", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_squeezenet_s_26_layers_take_8_mb_at_most(tmp_path: Path) -> None:
    model = hookviz.load_model("squeezenet")
    photo = next(each.path for each in samples() if each.kind == "photo")
    seen = hookviz.capture(model, photo)
    assert len(seen) == 26
    file = hookviz.save_page(seen, tmp_path / "cat.html", image=photo)
    assert file.stat().st_size <= 8_000_000 < MOST_BYTES
    blocks = blocks_of(file)
    assert len([name for name in blocks if name.startswith("values-")]) == 26
    assert np.isfinite([unpacked(blocks[f"layer-{at}"])["power"] for at in range(26)]).all()
