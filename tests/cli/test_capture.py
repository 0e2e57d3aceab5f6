import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import hookviz
from hookviz.cli.capture import summary
from hookviz.types import Model
from tests.cli.command import invoke, mistake, output_of, save_pictures
from tests.networks import random_input


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return save_pictures(tmp_path / "pictures", "a.png")[0]


def test_every_convolution_as_npz(image: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    printed = output_of("capture", image, "-o", out)
    cap = hookviz.capture(hookviz.load_model("shapesnet"), image)
    with np.load(out) as loaded:
        assert set(loaded.files) == {"input", *cap}
        for address, part in cap.items():
            np.testing.assert_array_equal(loaded[address], part.values.numpy())
    label, chance = cap.predictions(1)[0]
    first, top, *_ = printed.splitlines()
    assert first == f"{image} → {out}"
    assert top.split(maxsplit=1) == [f"{chance:.1%}", label]
    assert all(address in printed for address in cap)


def test_named_layers_as_safetensors(image: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "a.safetensors"
    output_of("capture", image, "--layers", "head, stem.relu", "-o", out)
    cap = hookviz.capture(hookviz.load_model("shapesnet"), image, ["stem.relu", "head"])
    loaded = load_file(out)
    assert set(loaded) == {"input", "stem.relu", "head"}
    assert torch.equal(loaded["head"], cap["head"].values)


def test_the_summary_as_json_needs_no_file(image: Path) -> None:
    [row] = json.loads(output_of("capture", image, "--layers", "stem.relu", "--json"))
    cap = hookviz.capture(hookviz.load_model("shapesnet"), image, ["stem.relu"])
    values = cap["stem.relu"].values.double()
    [layer] = row["layers"]
    assert (layer["layer"], layer["shape"]) == ("stem.relu", [32, 64, 64])
    assert layer["mean"] == pytest.approx(values.mean().item())
    assert layer["deviation"] == pytest.approx(values.std(correction=0).item())
    assert (layer["minimum"], layer["maximum"]) == (values.min().item(), values.max().item())
    assert layer["zeros"] == pytest.approx((values == 0).double().mean().item())
    assert (layer["nan"], layer["inf"], row["out"]) == (0, 0, None)
    assert len(row["predictions"]) == 5
    assert [each["label"] for each in row["predictions"]] == [
        label for label, _ in cap.predictions(5)
    ]


def test_layers_by_their_kind_and_labels_of_ones_own(image: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"thing {number}" for number in range(20)))

    def shapes(*options: object) -> dict[str, list[int]]:
        [row] = json.loads(output_of("capture", image, *options, "--labels", labels, "--json"))
        assert all(each["label"].startswith("thing ") for each in row["predictions"])
        return {layer["layer"]: layer["shape"] for layer in row["layers"]}

    assert shapes("--layer", "stage1") == {"stage1": [48, 32, 32]}
    model = hookviz.load_model("shapesnet")
    for kind in ("all", "maps"):
        of_kind = shapes("--layers", kind)
        assert {layer.name for layer in hookviz.list_layers(model, kind=kind)} <= set(of_kind)
        assert kind == "all" or all(len(shape) == 3 for shape in of_kind.values())


def test_images_in_one_pass_and_one_file_that_says_which_is_which(tmp_path: Path) -> None:
    paths = save_pictures(tmp_path / "in", "b.png", "a.jpg", "c.png")
    (tmp_path / "in" / "broken.png").write_bytes(b"\x89PNG")
    names = ["in/b.png", "in/broken.png", "in/a.jpg", "in/c.png"]
    given = [tmp_path / name for name in names]
    model = hookviz.load_model("shapesnet")
    read = [given[0], *given[2:]]
    expected = hookviz.capture(model, read, ["stem.relu", "stage1"])
    options = ("--layers", "stem.relu,stage1", "--together", "--json")
    result = invoke("capture", *given, *options, "-o", tmp_path / "new" / "all.npz")
    assert result.exit_code == 2
    assert "broken.png" in result.stderr
    with np.load(tmp_path / "new" / "all.npz") as loaded:
        assert loaded["images"].tolist() == [str(path) for path in read]
        assert set(loaded.files) == {"images", "input", *expected[0]}
        for place, cap in enumerate(expected):
            for address, part in cap.items():
                np.testing.assert_array_equal(loaded[address][place], part.values.numpy())
            np.testing.assert_array_equal(loaded["input"][place], cap.input[0].numpy())
    rows = json.loads(result.stdout)
    assert [row["image"] for row in rows if "error" not in row] == [str(path) for path in read]
    assert [row["place"] for row in rows if "error" not in row] == [0, 1, 2]
    printed = output_of(
        "capture", *paths, "--layers", "stage1", "--together", "-o", tmp_path / "x.safetensors"
    )
    for place, path in enumerate(paths):
        assert f"{path} → {tmp_path / 'x.safetensors'}[{place}]" in printed
    with safe_open(tmp_path / "x.safetensors", "pt") as written:
        assert json.loads(written.metadata()["images"]) == [str(path) for path in paths]
        assert written.get_tensor("stage1").shape == (3, 48, 32, 32)
    said = mistake("capture", *paths, "--together", "-o", tmp_path / "folder")
    assert ".npz, .safetensors: together the images go into one file" in said
    assert not (tmp_path / "folder").exists()


def test_numbers_that_are_none(tiny: Model) -> None:
    made = random_input(3)
    made[0, :, 4, 4] = float("nan")
    cap = hookviz.capture(tiny, made, ["conv1"])
    row = summary(cap)
    [layer] = row["layers"]
    assert layer["nan"] == 4 * 9
    assert np.isfinite(layer["mean"])
    cap = hookviz.capture(tiny, torch.full_like(made, float("nan")), ["head"], logits=False)
    [layer] = summary(cap)["layers"]
    assert np.isnan(layer["minimum"])
    assert layer["nan"] == 5
    assert summary(cap)["predictions"] == []


def test_what_does_not_work(image: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    for arguments, text in (
        ((image, "--layers", "stem.relu,stem.rleu"), "Did you mean 'stem.relu'"),
        ((image.with_name("b.png"),), "b.png"),
        ((image, "-o", tmp_path / "a.zip"), ".npz, .safetensors"),
        ((), "IMAGE"),
    ):
        assert text in mistake("capture", "-o", out, *arguments), arguments
    assert not out.exists()
