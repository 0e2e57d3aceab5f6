"""An atlas that is made in memory a little at a time, against the one of the same folder."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import nn

import hookviz
from hookviz.atlas import growing
from hookviz.atlas.atlas import Atlas
from hookviz.atlas.growing import GrowingAtlas
from hookviz.capturing.image_shards import READ_THREADS
from hookviz.errors import HookVizError, ModelError
from hookviz.settings import settings
from hookviz.types import Model
from tests.atlas.folders import by_plain_hooks, check_tops, save_folder
from tests.networks import all_hooks, as_model, seeded
from tests.pictures import encoded, picture


def progress(model: Model, files: list[tuple[str, bytes]], seconds: float = 0.0) -> Atlas:
    """The finished atlas, in as many steps as it takes."""
    atlas = GrowingAtlas(files, most=10**8)
    for _ in range(1000):
        atlas.go_on(model, seconds)
        if atlas.atlas is not None:
            return atlas.atlas
    raise AssertionError("It does not end.")


@pytest.mark.parametrize("seconds", [0.0, 0.02, 60.0])
def test_it_is_the_atlas_of_the_same_files_in_a_folder(
    tiny: Model, tmp_path: Path, seconds: float
) -> None:
    paths = save_folder(tmp_path / "photos", 23)
    atlas = progress(tiny, [(path.name, path.read_bytes()) for path in paths], seconds)
    whole = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "a.atlas", batch=1)
    assert atlas.layers == whole.layers
    assert atlas.counts == whole.counts
    for layer, channels in whole.layers.items():
        for name in ("mean", "zeros", "histogram", "strongest"):
            np.testing.assert_array_equal(
                getattr(atlas.statistics(layer), name), getattr(whole.statistics(layer), name)
            )
        for channel in range(channels):
            for mine, theirs in zip(
                atlas.top_activations(layer, channel),
                whole.top_activations(layer, channel),
                strict=True,
            ):
                assert (mine.image.name, mine.image.digest) == (
                    theirs.image.name,
                    theirs.image.digest,
                )
                assert (mine.value, mine.cell, mine.box) == (theirs.value, theirs.cell, theirs.box)
                np.testing.assert_array_equal(mine.patch, theirs.patch)
    check_tops(atlas, [path.name for path in paths], by_plain_hooks(tiny, paths), 0.0)
    assert all_hooks(tiny) == 0
    assert atlas.belongs_to(tiny)
    assert all(atlas.picture(image) is None for image in atlas.images)


def test_broken_files_are_named_and_counted_and_the_rest_goes_on(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = settings().max_pixels // READ_THREADS + 1
    bomb = io.BytesIO()
    Image.new("1", (large // 1000 + 1, 1000)).save(bomb, "PNG")
    sound = encoded(picture(1))
    files = [
        ("words.png", b"these are only words"),
        ("a.png", sound),
        ("cut.jpg", encoded(picture(2, 400, 300), "JPEG")[:3000]),
        ("large.png", bomb.getvalue()),
        ("b.png", encoded(picture(3))),
        ("copy.png", sound),
        ("last.png", b""),
    ]
    for order in (files, files[::-1]):
        for seconds in (0.0, 60.0):
            atlas = progress(tiny, order, seconds)
            expected = {"images": 7, "tallied": 3, "repeated": 1, "left_out": 4}
            assert dict(atlas.counts) == expected
            assert sorted(atlas.left_out) == ["cut.jpg", "large.png", "last.png", "words.png"]
            assert "million" in atlas.left_out["large.png"]
            assert all(repr(name) in reason for name, reason in atlas.left_out.items())
    broken = GrowingAtlas([each for each in files if each[0] in atlas.left_out], most=10**8)
    with pytest.raises(HookVizError, match=r"None of the 4 images .*'words\.png' is no image"):
        broken.go_on(tiny, 60)
    half = GrowingAtlas([files[2]], most=10**8)
    with pytest.raises(HookVizError, match="None of the 1 images"):
        half.go_on(tiny, 60)


def test_names_are_no_ways_to_anywhere(tiny: Model) -> None:
    names = ["../../etc/passwd", "C:\\x\\a.png", "a.png", "\x00\u202e\n", "<b>" * 99, "a.png", ""]
    files = [(name, encoded(picture(seed))) for seed, name in enumerate(names)]
    atlas = GrowingAtlas(files, most=10**8)
    assert atlas.names[:4] == ("passwd", "a.png", "a.png (2)", "image")
    assert atlas.names[5:] == ("a.png (3)", "image (2)")
    assert len(atlas.names[4]) <= 80
    twice = GrowingAtlas([(name, b"") for name in ("a", "a (2)", "a", "a")], most=1)
    assert len(set(twice.names)) == 4
    finished = progress(tiny, files)
    assert all(image.path == "" for image in finished.images)
    assert not finished.classes


def test_it_takes_no_more_than_it_may(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [(f"{seed}.png", encoded(picture(seed))) for seed in range(6)]
    atlas = GrowingAtlas(files, most=2000)
    with pytest.raises(HookVizError, match="becomes larger than"):
        atlas.go_on(tiny, 60)
    channels = sum(progress(tiny, files).layers.values())
    monkeypatch.setattr(growing, "_MOST_ENTRIES", 2 * channels + 1)
    assert progress(tiny, files).top == 2
    monkeypatch.setattr(growing, "_MOST_ENTRIES", 1)
    assert progress(tiny, files).top == 1


def test_how_far_it_is_and_how_large(tiny: Model) -> None:
    files = [(f"{seed}.png", encoded(picture(seed))) for seed in range(5)]
    atlas = GrowingAtlas(files, most=10**8)
    assert (atlas.progress.done, atlas.progress.images, atlas.nbytes) == (0, 5, 0)
    seen = []
    while atlas.atlas is None:
        atlas.go_on(tiny, 0)
        seen.append(atlas.progress)
        assert atlas.nbytes > 0
    assert [each.done for each in seen if not each.cutting] == [0, 1, 2, 3, 4, 5]
    assert seen[-1].cutting
    assert seen[-1].done == seen[-1].images <= 5


def test_a_network_without_maps_has_none() -> None:
    flat = as_model(seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4))))
    with pytest.raises(ModelError, match="has no layer whose maps"):
        GrowingAtlas([("a.png", encoded(picture()))], most=10**8).go_on(flat, 1)
