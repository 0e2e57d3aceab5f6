import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import hookviz
from hookviz.atlas.plan import (
    MAX_CLASSES,
    ChannelTable,
    Plan,
    Source,
    channel_table,
    differences,
    names_with_maps,
    sources,
)
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ModelError
from hookviz.types import Model
from tests.atlas.folders import save_folder
from tests.networks import as_model, seeded
from tests.pictures import encoded, picture


def plan(model: Model, images: int, **options: int) -> Plan:
    sources = [Source(f"{number}.png", Path(f"{number}.png")) for number in range(images)]
    return Plan(model, sources, ChannelTable(()), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("images", "batch"), [(1, 16), (256, 16), (1000, 16), (700, 300), (9, 1)])
def test_shards_are_whole_batches_of_all_images(tiny: Model, images: int, batch: int) -> None:
    shards = plan(tiny, images, batch=batch).shards
    assert [index for shard in shards for index in shard] == list(range(images))
    assert all(len(shard) % batch == 0 for shard in shards[:-1])


def test_plans_differ_in_what_decides_the_result_and_know_classes(tiny: Model) -> None:
    one, other = plan(tiny, 3).described(), plan(tiny, 4, top=2).described()
    assert differences(one, one) == ""
    assert (
        differences(one, other)
        == "it is of 3 images, not 4; it is of other images; top is 9, not 2"
    )
    mixed = [Source("a/1", None, "a"), Source("2", None)]
    assert Plan(tiny, mixed, ChannelTable(())).classes == ()
    named = [Source("b/1", None, "b"), Source("a/1", None, "a")]
    assert Plan(tiny, named, ChannelTable(())).classes == ("a", "b")
    days = [Source(f"{day}/1", None, str(day)) for day in range(MAX_CLASSES + 1)]
    assert Plan(tiny, days, ChannelTable(())).classes == ()
    assert len(Plan(tiny, days[1:], ChannelTable(())).classes) == MAX_CLASSES


def test_a_folder_gives_its_images_by_their_ways_and_classes(tiny: Model, tmp_path: Path) -> None:
    save_folder(tmp_path / "p" / "b" / "deep", 1)
    save_folder(tmp_path / "p" / "a", 2)
    (tmp_path / "p" / "a" / "notes.txt").write_text("no image")
    listed = sources(tiny, tmp_path / "p")
    assert [(each.name, each.category) for each in listed] == [
        ("a/000.png", "a"),
        ("a/001.png", "a"),
        ("b/deep/000.png", "b"),
    ]
    assert listed[0].path == tmp_path / "p" / "a" / "000.png"


def test_several_of_any_kind_each_once(tiny: Model, tmp_path: Path) -> None:
    first, second = save_folder(tmp_path / "p", 2)
    other = save_folder(tmp_path / "q", 1)[0]
    image = picture()
    images = [str(first), tmp_path / "p", f"{tmp_path}/q/*.png", image, encoded(image)]
    listed = sources(tiny, [*images, torch.zeros(3, 4, 4)])
    names = [each.name for each in listed]
    assert names == ["000.png", "001.png", "000.png (2)", "image 4", "image 5", "image 6"]
    assert [each.path for each in listed[:4]] == [first, second, other, None]
    listed = sources(tiny, {"cat/1": picture(), "dog/2": picture(1)})
    assert [each.category for each in listed] == ["cat", "dog"]
    assert [each.name for each in sources(tiny, [picture()])] == ["image 1"]
    with pytest.raises(hookviz.HookVizError, match="no image"):
        sources(tiny, [])


def test_a_file_of_many_is_looked_up_once(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a network's disk each look takes milliseconds: of 100,000 files, minutes."""
    for number in range(200):
        (tmp_path / f"{number}.png").touch()
    looked: list[object] = []
    real = os.stat

    def stat(path: object, *args: object, **options: object) -> os.stat_result:
        looked.append(path)
        return real(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert len(sources(tiny, tmp_path)) == 200
    assert len(looked) < 200 + 20


class Labelled:
    """Map-style dataset of pairs, as torch has them."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((3, 16, 16), float(index)), index % 2


def test_a_dataset_and_a_loader_are_read_without_their_labels(tiny: Model, tmp_path: Path) -> None:
    names = [f"image {number}" for number in range(1, 6)]
    data = Labelled()
    loader: DataLoader[Any] = DataLoader(data, batch_size=2)  # type: ignore[arg-type]
    for images in (data, loader, [data[place] for place in range(5)]):
        listed = sources(tiny, images)
        assert [each.name for each in listed] == names
        for number, each in enumerate(listed):
            assert torch.equal(each.image.reshape(3, 16, 16), data[number][0])
    files = save_folder(tmp_path, 3)
    listed = sources(tiny, [(str(file), 0) for file in files])
    assert [each.path for each in listed] == files


def test_every_layers_channels_have_their_place(tiny: Model) -> None:
    table = channel_table(layer_trace(tiny, (3, 16, 16)))
    assert table.channels == 10
    assert [(layer.address, layer.rows, layer.cells) for layer in table.layers] == [
        ("conv1", slice(0, 4), (16, 16)),
        ("conv2", slice(4, 10), (7, 7)),
    ]
    assert table.by_address["conv2"].name == "conv2"


def test_each_call_of_a_layer_has_its_own_channels_and_functions_none() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 6, 3)
            self.relu, self.head = nn.ReLU(), nn.Linear(6, 2)

        def forward(self, images: Tensor) -> Tensor:
            maps: Tensor = self.relu(self.two(self.relu(self.one(images))))
            scores: Tensor = self.head(maps.mean((2, 3)))
            return scores

    model = as_model(seeded(Shared))
    trace = layer_trace(model, (3, 16, 16))
    table = channel_table(trace, ("relu", "two"))
    assert [(each.address, each.channels, each.cells) for each in table.layers] == [
        ("relu", 4, (14, 14)),
        ("relu#1", 6, (12, 12)),
        ("two", 6, (12, 12)),
    ]
    assert names_with_maps(model, trace, None) is None
    with pytest.raises(ModelError, match=r"'head' of Shared puts out no maps.*Layer 'two'"):
        names_with_maps(model, trace, "head")

    class Calling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.conv(images).relu().mean((2, 3))
            return scores

    model = as_model(seeded(Calling))
    trace = layer_trace(model, (3, 16, 16))
    with pytest.raises(ModelError, match=r"relu\(\) after conv is a function .* layer before it"):
        names_with_maps(model, trace, "relu() after conv")
