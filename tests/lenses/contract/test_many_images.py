from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import HookVizError, SettingError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.many_images import prepared_alike
from hookviz.types import Model
from tests.pictures import picture


@pytest.mark.parametrize("options", [{}, {"size": 24}, {"whole": True}, {"size": 9, "whole": True}])
def test_images_become_inputs_as_the_first_one_did(tiny: Model, options: dict[str, Any]) -> None:
    image = reading.read(picture())
    subject = Subject(tiny, prepare_input(tiny, image, **options), image)
    listed = {"first": image, "other": picture(5), "tensor": torch.ones(3, 8, 8), "broken": b"no"}
    told: list[float] = []
    inputs = prepared_alike(subject, listed, ProgressReporter(told.append))
    assert list(inputs) == list(listed)
    assert inputs["first"] is subject.model_input
    expected = prepare_input(tiny, picture(5), **options)
    assert inputs["other"].digest == expected.digest
    assert inputs["tensor"].tensor.shape == (1, 3, 8, 8)
    assert inputs["broken"] == b"no"
    assert told[-1] == 1


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


def maps(written: dict[str, Path | HookVizError]) -> list[np.ndarray[Any, Any]]:
    found = []
    for part in written.values():
        assert isinstance(part, Path)
        with np.load(part / "values.npz") as values:
            found.append(values["map"])
    return found


@pytest.mark.by_day
def test_what_is_there_counts_for_the_same_input_network_and_settings_alone(
    shapes: hookviz.Model, tmp_path: Path
) -> None:
    one, other = torch.rand(3, 64, 64), torch.rand(3, 64, 64)
    network = hookviz.load_model("shapesnet", "random")
    runs: list[tuple[hookviz.Model, Any, dict[str, Any]]] = [
        (shapes, one, {}),
        (shapes, other, {}),  # of the same name, "image 1"
        (network, other, {}),
        (network, other, {"method": "input × gradient"}),
        (network, other, {"target": lambda out: out[:, 2].sum()}),
        (network, other, {"target": lambda out: out[:, 3].sum()}),
    ]
    for model, image, settings in runs:
        for _ in range(2):
            written = hookviz.stream_lens("saliency", model, [image], to=tmp_path, **settings)
            alone = hookviz.run_lens("saliency", model, image, **settings)
            assert np.array_equal(maps(written)[0], alone.values["map"])


def test_an_image_without_what_the_others_have_is_told(shapes: hookviz.Model) -> None:
    settings: dict[str, Any] = {"layer": "stem.relu", "row": 2, "column": 24}
    images = {"wide": torch.rand(3, 32, 64), "high": torch.rand(3, 64, 32)}
    found = dict(hookviz.stream_lens("occlusion", shapes, images, window=32, **settings))
    assert isinstance(found["wide"], hookviz.LensResult)
    assert isinstance(found["high"], SettingError)


@pytest.mark.parametrize(
    "several",
    [
        list,
        lambda images: DataLoader(images, batch_size=2),
        lambda images: DataLoader(images + images[:1], batch_size=3, drop_last=True),
    ],
)
def test_progress_ends_with_the_last_image(several: Any, shapes: hookviz.Model) -> None:
    shares: list[float] = []
    images = [torch.rand(3, 64, 64) for _ in range(3)]
    for _ in hookviz.stream_lens("saliency", shapes, several(images), progress=shares.append):
        assert shares[-1] <= 1
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(
    "name",
    ["..", ".", "a/b.jpg", "/etc/passwd", "../../up", " ", "", "很长的名字" * 30, "values.npz"],
)
def test_no_name_leads_out_of_the_folder(name: str, shapes: hookviz.Model, tmp_path: Path) -> None:
    folder = tmp_path / "maps"
    written = hookviz.stream_lens("saliency", shapes, {name: PATHS[0]}, to=folder)
    part = written[name]
    assert not isinstance(part, HookVizError)
    assert part.resolve().parent == folder.resolve()


def test_mistakes_are_told_before_the_first_image_and_mended_in_the_same_folder(
    shapes: hookviz.Model, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match="no parameter 'colour'"):
        hookviz.stream_lens("saliency", shapes, PATHS, colour="red")
    with pytest.raises(SettingError, match="method"):
        next(hookviz.stream_lens("saliency", shapes, PATHS, method="none"))
    with pytest.raises(hookviz.UnknownLayerError, match="stge2"):
        hookviz.stream_lens("grad-cam", shapes, PATHS, to=tmp_path, layer="stge2")
    written = hookviz.stream_lens("grad-cam", shapes, PATHS[:1], to=tmp_path, layer="stage2")
    assert maps(written)[0].shape == (16, 16)
