"""A lens over many images: one after another, and into a folder that a stopped run goes on with."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import hookviz
from hookviz.errors import HookVizError, SettingError
from hookviz.images.samples import samples

PATHS = [each.path for each in samples()[:3]]


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def test_each_image_has_what_it_has_alone(shapes: hookviz.Model) -> None:
    found = hookviz.stream_lens("grad-cam", shapes, PATHS, layer="stage2", target="star")
    names = []
    for path, (name, result) in zip(PATHS, found, strict=True):
        assert isinstance(result, hookviz.LensResult)
        alone = hookviz.run_lens("grad-cam", shapes, path, layer="stage2", target="star")
        assert np.array_equal(result.values["map"], alone.values["map"])
        names.append(name)
    assert names == [path.name for path in PATHS]


def test_a_loader_and_a_folder_are_gone_through(shapes: hookviz.Model, tmp_path: Path) -> None:
    loader = DataLoader(TensorDataset(torch.rand(3, 3, 64, 64), torch.arange(3)), batch_size=2)
    assert [name for name, _ in hookviz.stream_lens("saliency", shapes, loader)] == [
        *("image 1", "image 2", "image 3")
    ]
    (tmp_path / "one.jpg").write_bytes(PATHS[0].read_bytes())
    assert [name for name, _ in hookviz.stream_lens("saliency", shapes, tmp_path)] == ["one.jpg"]


def test_an_image_that_fails_is_told_and_the_rest_go_on(
    shapes: hookviz.Model, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    found = dict(hookviz.stream_lens("saliency", shapes, [bad, PATHS[0]]))
    assert "'bad.png' is no image" in str(found["bad.png"])
    assert isinstance(found[PATHS[0].name], hookviz.LensResult)


class _StopError(Exception):
    pass


def test_a_run_that_was_stopped_goes_on(shapes: hookviz.Model, tmp_path: Path) -> None:
    folder = tmp_path / "maps"

    def stop(share: float) -> None:
        if share > 0.4:
            raise _StopError

    with pytest.raises(_StopError):
        hookviz.stream_lens("saliency", shapes, PATHS, to=folder, progress=stop)
    first = folder / PATHS[0].name / "values.npz"
    before = first.stat().st_mtime_ns
    (folder / PATHS[1].name).mkdir(exist_ok=True)  # as a kill leaves it: without its numbers
    written = hookviz.stream_lens("saliency", shapes, PATHS, to=folder)
    assert written == {path.name: folder / path.name for path in PATHS}
    assert first.stat().st_mtime_ns == before
    for path in PATHS:
        with np.load(folder / path.name / "values.npz") as values:
            alone = hookviz.run_lens("saliency", shapes, path)
            assert np.array_equal(values["map"], alone.values["map"])
        assert list((folder / path.name).glob("*.png"))
    with pytest.raises(SettingError, match=r"results with method=None, not 'SmoothGrad'"):
        hookviz.stream_lens("saliency", shapes, PATHS, to=folder, method="SmoothGrad")


def test_a_folder_of_something_else_is_left_alone(shapes: hookviz.Model, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SettingError, match="holds other files"):
        hookviz.stream_lens("saliency", shapes, PATHS, to=tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["..", ".", "a/b.jpg", "/etc/passwd", "../../up", " "])
def test_no_name_leads_out_of_the_folder(name: str, shapes: hookviz.Model, tmp_path: Path) -> None:
    folder = tmp_path / "maps"
    written = hookviz.stream_lens("saliency", shapes, {name: PATHS[0]}, to=folder)
    part = written[name]
    assert not isinstance(part, HookVizError)
    assert part.resolve().parent == folder.resolve()


def test_mistakes_are_told_before_the_first_image(shapes: hookviz.Model) -> None:
    with pytest.raises(SettingError, match="no parameter 'colour'"):
        hookviz.stream_lens("saliency", shapes, PATHS, colour="red")
    with pytest.raises(SettingError, match="method"):
        next(hookviz.stream_lens("saliency", shapes, PATHS, method="none"))
