from pathlib import Path
from typing import Any

import pytest

import hookviz
from hookviz.errors import ImageError, SettingError, UnknownLayerError
from tests.atlas.folders import save_folder
from tests.networks import all_hooks, random_input


def test_each_capture_is_the_one_of_capture(tiny: hookviz.Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 3)
    shares: list[float] = []
    images = [*paths, random_input(5)]
    found = dict(hookviz.capture_each(tiny, images, ["conv1"], progress=shares.append))
    assert list(found) == ["000.png", "001.png", "002.png", "image 4"]
    for image, cap in zip(images, found.values(), strict=True):
        own = hookviz.capture(tiny, image, ["conv1"])
        assert list(cap) == ["conv1"]
        assert cap["conv1"].values.equal(own["conv1"].values)
        assert cap.logits.equal(own.logits)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_what_is_made_of_it_comes_in_its_place(tiny: hookviz.Model) -> None:
    found = hookviz.capture_each(tiny, {"a": random_input(1)}, "conv2", len, logits=False)
    assert list(found) == [("a", 1)]


def test_one_after_another(tiny: hookviz.Model) -> None:
    made: list[int] = []

    def then(_cap: hookviz.Capture) -> int:
        made.append(len(made))
        return made[-1]

    for number, (_, found) in enumerate(
        hookviz.capture_each(tiny, [random_input(seed) for seed in range(3)], then=then)
    ):
        assert found == number
        assert len(made) == number + 1


def test_one_that_can_not_be_read_is_told_and_the_rest_go_on(tiny: hookviz.Model) -> None:
    found = dict(hookviz.capture_each(tiny, {"a": b"nothing", "b": random_input(2)}))
    assert isinstance(found["a"], ImageError)
    assert isinstance(found["b"], hookviz.Capture)


def test_what_would_be_with_every_image_ends_it(tiny: hookviz.Model) -> None:
    with pytest.raises(UnknownLayerError):
        list(hookviz.capture_each(tiny, [random_input(1)], "conv7"))
    with pytest.raises(SettingError, match="'rya'"):
        list(hookviz.capture_each(tiny, [random_input(1)], engine="rya"))


def test_whoever_is_told_can_end_it(tiny: hookviz.Model) -> None:
    def end(_share: float) -> Any:
        raise ImageError("enough")

    with pytest.raises(ImageError, match="enough"):
        list(hookviz.capture_each(tiny, [random_input(1), random_input(2)], progress=end))
    assert all_hooks(tiny) == 0
