from pathlib import Path

import pytest

import hookviz
from hookviz.models import catalog
from hookviz.models.catalog import SOURCES, find_source, source_of
from hookviz.settings import settings


def test_names_and_titles_are_unique_and_families_are_together() -> None:
    specs = hookviz.list_models()
    assert len({spec.name for spec in specs}) == len(specs)
    assert len({spec.title for spec in specs}) == len(specs)
    families = [spec.family for spec in specs]
    assert families == sorted(families, key=families.index)
    assert {"ResNet", "VGG", "EfficientNet", "ConvNeXt", "MobileNetV3"} <= set(families)


def test_the_first_model_is_the_one_that_is_asked_for_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("HOOKVIZ_START", "resnet34")
    settings.cache_clear()
    try:
        assert catalog.first_model().name == "squeezenet"
        assert not catalog.find_model("resnet34").on_disk
        path = catalog.weights_path("resnet34")
        path.parent.mkdir(parents=True)
        path.touch()
        assert catalog.first_model().name == "resnet34"
        assert catalog.find_model("resnet34").on_disk  # where torch keeps them
        monkeypatch.setenv("HOOKVIZ_START", "shapesnet")
        settings.cache_clear()
        assert catalog.first_model().name == "shapesnet"
        monkeypatch.setenv("HOOKVIZ_START", "resnet43")
        settings.cache_clear()
        with pytest.raises(hookviz.UnknownModelError, match="resnet34"):
            catalog.first_model()
    finally:
        monkeypatch.undo()
        settings.cache_clear()


def test_a_listed_model_belongs_to_the_source_that_lists_it() -> None:
    for source in SOURCES:
        assert [spec.name for spec in source.specs() if source_of(spec.name) is not source] == []
        assert all(spec.name.startswith(source.prefix) for spec in source.specs())
        ways = (source.weights_file, source.weights_url, source.build_pretrained)
        assert sum(way is not None for way in ways) == 1  # pretrained weights come by one way
    assert [find_source(name) for name in ("", "no-such-model", "timm")] == [None] * 3
    assert source_of("squeezenet").same_architecture("squeezenet") == "squeezenet1_1"
    assert source_of("shapesnet").same_architecture("shapesnet") == "shapesnet"
