import pytest

from hookviz.models.model_source import ModelSource
from hookviz.models.sources import SOURCES, find_source, source_of


def test_a_listed_model_belongs_to_the_source_that_lists_it() -> None:
    for source in SOURCES:
        assert [spec.name for spec in source.specs() if source_of(spec.name) is not source] == []
        assert all(spec.name.startswith(source.prefix) for spec in source.specs())


@pytest.mark.parametrize("name", ["", "no-such-model", "timm"])
def test_a_name_of_none_has_no_source(name: str) -> None:
    assert find_source(name) is None


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_pretrained_weights_come_by_one_way(source: ModelSource) -> None:
    ways = (source.weights_file, source.weights_url, source.build_pretrained)
    assert sum(way is not None for way in ways) == 1


def test_a_borrowed_architecture_is_another_models() -> None:
    assert source_of("squeezenet").same_architecture("squeezenet") == "squeezenet1_1"
    assert source_of("shapesnet").same_architecture("shapesnet") == "shapesnet"
