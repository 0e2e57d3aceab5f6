from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import hookviz
from hookviz.errors import ImageError, SettingError, UnknownLayerError
from tests.atlas.folders import save_folder
from tests.networks import all_hooks, random_input
from tests.pictures import picture


def test_each_capture_is_the_one_of_capture(tiny: hookviz.Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 3)
    shares: list[float] = []
    images = [*paths, random_input(5)]
    found = dict(hookviz.stream(tiny, images, ["conv1"], batch_size=1, progress=shares.append))
    assert list(found) == ["000.png", "001.png", "002.png", "image 4"]
    for image, cap in zip(images, found.values(), strict=True):
        own = hookviz.capture(tiny, image, ["conv1"])
        assert list(cap) == ["conv1"]
        assert cap["conv1"].values.equal(own["conv1"].values)
        assert cap.logits.equal(own.logits)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    one = hookviz.stream(tiny, {"a": random_input(1)}, "conv2", len, logits=False)
    assert list(one) == [("a", 1)]
    made: list[int] = []

    def then(_cap: hookviz.Capture) -> int:
        made.append(len(made))
        return made[-1]

    endless = (random_input(seed) for seed in count())
    pairs = hookviz.stream(tiny, endless, then=then, batch_size=2)
    assert list(islice(pairs, 3)) == [("image 1", 0), ("image 2", 1), ("image 3", 2)]
    assert len(made) == 4  # one after another, as far as it was needed
    pairs.close()


def test_an_image_that_can_not_be_read_is_told_and_what_is_wrong_with_all_ends_it(
    tiny: hookviz.Model,
) -> None:
    found = dict(hookviz.stream(tiny, {"a": b"nothing", "b": random_input(2)}))
    assert isinstance(found["a"], ImageError)
    assert isinstance(found["b"], hookviz.Capture)

    def end(_share: float) -> Any:
        raise ImageError("enough")

    for options, error, words in (
        ({"layers": "conv7"}, UnknownLayerError, "conv7"),
        ({"engine": "rya"}, SettingError, "'rya'"),
        ({"progress": end}, ImageError, "enough"),
    ):
        with pytest.raises(error, match=words):
            list(hookviz.stream(tiny, [random_input(1), random_input(2)], **options))
    assert all_hooks(tiny) == 0


def test_together_each_capture_equals_that_of_single_passes(tiny: hookviz.Model) -> None:
    class Endless(IterableDataset[torch.Tensor]):
        """A dataset without a length."""

        def __iter__(self) -> Any:
            return iter(rows.tensors[0])

    rows = TensorDataset(torch.rand(7, 3, 16, 16), torch.arange(7))
    for images in (rows, DataLoader(rows, 3), Endless(), DataLoader(Endless(), 2)):
        shares: list[float] = []
        found = dict(hookviz.stream(tiny, images, "conv*", batch_size=4, progress=shares.append))
        assert list(found) == [f"image {number}" for number in range(1, 8)]
        for image, cap in zip(rows.tensors[0], found.values(), strict=True):
            alone: hookviz.Capture = hookviz.capture(tiny, image)
            assert list(cap) == list(alone)
            torch.testing.assert_close(cap["conv2"].raw, alone["conv2"].raw)
            torch.testing.assert_close(cap.logits, alone.logits)
        of_endless = isinstance(getattr(images, "dataset", images), Endless)
        assert bool(shares) != of_endless
        assert len(hookviz.capture(tiny, images, "conv1")) == 7


def test_the_images_of_a_folder_are_captured(tiny: hookviz.Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 3)
    (tmp_path / "notes.txt").write_text("no image")
    shares: list[float] = []
    found = dict(hookviz.stream(tiny, str(tmp_path), "conv1", progress=shares.append))
    assert shares[-1] == 1
    assert sorted(shares) == shares
    assert list(found) == [path.name for path in paths]
    batch = hookviz.capture(tiny, tmp_path, "conv1")
    assert batch["conv1"].raw.equal(hookviz.capture(tiny, paths, "conv1")["conv1"].raw)
    assert hookviz.extract_features(tiny, tmp_path).names == tuple(found)
    of_several: Any = batch
    with pytest.raises(hookviz.HookVizError, match=r"of one image.*\[0\]"):
        hookviz.make_grid(of_several["conv1"])
    with pytest.raises(hookviz.HookVizError, match=r"of one image.*batch\[0\]"):
        hookviz.save_page(of_several, tmp_path / "page.html")


def test_a_run_goes_on_whatever_chose_its_layers_at_the_share_that_is_done(
    tiny: hookviz.Model, tmp_path: Path
) -> None:
    odd = [np.array([None]), torch.rand(3, 4, 4).to_sparse(), torch.rand(3, 4, 4, device="meta")]
    for done, last in ((0, 2), (2, 4), (4, 4)):
        images: list[Any] = [*odd, *(random_input(seed) for seed in range(last))]
        chosen: list[Any] = [lambda name, _module: name == "conv1", tiny.network.conv2]
        shares: list[float] = []
        options: dict[str, Any] = {"batch_size": 1, "progress": shares.append}
        stored = hookviz.stream(tiny, images, chosen, to=tmp_path / "maps", **options)
        assert list(stored) == ["conv1", "conv2"]
        assert len(stored["conv1"]) == last
        assert list(stored.failed) == ["image 1", "image 2", "image 3"]  # nothing to compare
        assert shares[-1] == 1
        assert not done or shares[0] > (3 + done - 1) / (3 + last)


@pytest.mark.parametrize("kind", ["tensor", "array", "picture", "bytes", "file"])
def test_other_images_of_the_same_names_are_refused(
    tiny: hookviz.Model, tmp_path: Path, kind: str
) -> None:
    def given(seed: int) -> list[Any]:
        file = tmp_path / str(seed) / "one.png"
        file.parent.mkdir(exist_ok=True)
        picture(seed).save(file)
        image: Any = {
            "tensor": random_input(seed)[0],
            "array": random_input(seed)[0].numpy(),
            "picture": picture(seed),
            "bytes": file.read_bytes(),
            "file": file,
        }[kind]
        return [image]

    folder = tmp_path / "maps"
    hookviz.stream(tiny, given(0), "conv1", to=folder)
    assert len(hookviz.stream(tiny, given(0), "conv1", to=folder)["conv1"]) == 1
    with pytest.raises(SettingError, match="of other images"):
        hookviz.stream(tiny, given(1), "conv1", to=folder)


def test_a_folder_of_another_run_is_refused(tiny: hookviz.Model, tmp_path: Path) -> None:
    images = [random_input(seed) for seed in range(3)]
    folder = tmp_path / "maps"
    hookviz.stream(tiny, images, "conv1", to=folder)
    with pytest.raises(SettingError, match=r"layers=.*'conv1'.*not.*'conv2'"):
        hookviz.stream(tiny, images, "conv2", to=folder)
    with pytest.raises(SettingError, match="of other images"):
        hookviz.stream(tiny, images[:2], "conv1", to=folder)
    with pytest.raises(SettingError, match="holds other files"):
        hookviz.stream(tiny, images, "conv1", to=tmp_path)
    with pytest.raises(hookviz.HookVizError, match=r"no activations.*activations\.json"):
        hookviz.StoredActivations(tmp_path)
    sizes = [torch.rand(3, 16, 16), torch.rand(3, 20, 16)]
    with pytest.raises(SettingError, match=r'different sizes.*pool="mean"'):
        hookviz.stream(tiny, sizes, "conv1", to=tmp_path / "sizes")
    with pytest.raises(SettingError, match="batch_size=0"):
        hookviz.stream(tiny, images, "conv1", batch_size=0)


def test_old_names_warn_and_do_what_they_did(tiny: hookviz.Model) -> None:
    images = torch.rand(3, 3, 16, 16)
    with pytest.warns(DeprecationWarning, match=r"capture_batch.*hookviz\.capture\("):
        batch = hookviz.capture_batch(tiny, images, "conv1")  # type: ignore[attr-defined]
    assert isinstance(batch, tuple)
    assert batch[2]["conv1"].raw.equal(hookviz.capture(tiny, images, "conv1")[2]["conv1"].raw)
    with pytest.warns(DeprecationWarning, match=r"capture_batch"):
        assert len(hookviz.capture_batch(tiny, images[:1])) == 1  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"capture_each.*hookviz\.stream\("):
        each = list(hookviz.capture_each(tiny, [images[0]]))  # type: ignore[attr-defined]
    [(name, cap)] = each
    assert name == "image 1"
    assert cap["conv1"].raw.equal(hookviz.capture(tiny, images[0])["conv1"].raw)
