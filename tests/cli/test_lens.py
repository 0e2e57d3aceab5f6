import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.lenses.contract import running
from tests.cli.command import mistake, output_of
from tests.pictures import picture


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    picture(3, 150, 140).save(path)
    return path


def test_all_lenses_are_listed_and_each_says_what_it_takes() -> None:
    slugs = [lens.slug for lens in running.list_lenses()]
    head, *rows = output_of("lens").splitlines()
    assert head.split()[:2] == ["lens", "question"]
    assert [row.split()[0] for row in rows] == slugs
    assert [each["lens"] for each in json.loads(output_of("lens", "--json"))] == slugs
    said = output_of("lens", "grad-cam")
    assert said.startswith("Where does the network look? Grad-CAM and its relatives: Which parts")
    assert [line.split()[0] for line in said.splitlines()[3:]] == [
        *("method", "layer", "target", "beside", "other_target", "other_method", "top"),
        *("beside_random", "region", "like"),
    ]
    one = json.loads(output_of("lens", "ablate", "--json"))
    assert one["parameters"]["factor"] == "Factor to scale by"


@pytest.mark.parametrize("slug", ["summary", "grad-cam", "maximize"])
def test_a_lens_runs_and_writes_what_it_shows(slug: str, photo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    few = ("--set", "steps=2") if slug == "maximize" else ()
    said = output_of("lens", slug, photo, "--size", 64, *few, "-o", out)
    assert said.splitlines()[-1] == str(out / "values.npz")
    with np.load(out / "values.npz", allow_pickle=False) as values:
        assert len(values.files) >= 1
    for path in out.glob("*.png"):
        with Image.open(path) as written:
            written.verify()


def test_pruned_weights_are_written_and_had_again(photo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    chosen = ("--set", "method=channels by L1 norm", "--set", "step=50", "--size", 64)
    said = output_of("lens", "prune-weights", photo, *chosen, "-o", out)
    path = out / "shapesnet-pruned.safetensors"
    assert "Really smaller, at 50 %" in said
    assert str(path) in said
    logits = hookviz.capture(hookviz.load_model("shapesnet", path), photo, size=64).logits
    np.testing.assert_array_equal(logits, np.load(out / "values.npz")["kept_logits"])


def test_the_numbers_as_json_and_the_lens_as_a_script(photo: Path) -> None:
    options = ("--set", "method=LayerCAM", "--set", "target=3", "--set", "layer=stage2.second.conv")
    found = json.loads(output_of("lens", "grad-cam", photo, "--json", *options))
    assert found["chosen"]["method"] == "LayerCAM"
    assert found["chosen"]["target"] == 3
    assert np.shape(found["values"]["map"]) == (16, 16)
    choices = ("--set", "layer=stage1.first.conv", "--set", "method=LayerCAM")
    said = output_of("lens", "grad-cam", photo, "--code", "--size", 64, *choices)
    compile(said, "script.py", "exec")  # its numbers: codegen/test_lens_script.py
    assert f'IMAGE = "{photo.name}"' in said
    assert 'LAYER = "stage1.first.conv"' in said
    assert 'np.savez("shapesnet-grad-cam.npz"' in said


def test_what_does_not_work(photo: Path) -> None:
    assert "Did you mean 'grad-cam'" in mistake("lens", "gradcam", photo)
    assert "NAME=VALUE" in mistake("lens", "grad-cam", photo, "--set", "method")
    assert "'Grad-CAM++'" in mistake("lens", "grad-cam", photo, "--set", "method=GradCAM")
    assert "no parameter 'layers'" in mistake("lens", "grad-cam", photo, "--set", "layers=x")
    assert "no.png" in mistake("lens", "summary", "no.png")
    assert "names no folder" in mistake("lens", "summary", photo, "-o", "")
    assert "give a folder" in mistake("lens", "summary", photo, "-o", "-")


def test_a_folder_of_images_goes_into_a_folder_each(photo: Path, tmp_path: Path) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    picture(1).save(photos / "a.png")
    picture(2).save(photos / "b.png")
    said = output_of("lens", "saliency", photos, photo, "--size", 64, "-o", out)
    assert said.splitlines() == [str(out / name) for name in ("a.png", "b.png", "photo.png")]
    assert all((Path(line) / "values.npz").exists() for line in said.splitlines())
    assert "several images go into a folder" in mistake("lens", "saliency", photos)
    numbers = out / "a.png" / "values.npz"
    before = numbers.stat().st_mtime_ns
    output_of("lens", "saliency", photos, "--size", 64, "-o", out)  # as after a kill
    assert numbers.stat().st_mtime_ns == before
