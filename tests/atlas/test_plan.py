from pathlib import Path

import pytest

from hookviz.atlas.channel_table import ChannelTable
from hookviz.atlas.plan import MAX_CLASSES, Plan, differences
from hookviz.atlas.sources import Source
from hookviz.types import Model


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
