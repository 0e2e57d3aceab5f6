"""An atlas as a folder of pages: what is in it, where its links lead, and what an end leaves."""

import io
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import hookviz
from hookviz.language.speaking import speaking
from hookviz.standalone.atlas_pages import _step
from hookviz.types import Preprocess
from hookviz.wording import number
from tests.atlas.folders import save_folder
from tests.networks import seeded

BAD = "<img src=x onerror=window.bad=1>"


class Own(nn.Module):
    """More channels than one jump, one that nothing excites by more than another, and a name."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 70, 3, stride=2)
        self.second = nn.Conv2d(70, 5, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.second(self.first(images).relu())
        return maps


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> hookviz.Atlas:
    root = tmp_path_factory.mktemp("atlas")
    save_folder(root / "photos" / f"a & {BAD.replace('/', '')}", 4)
    save_folder(root / "photos" / "b", 3, first=4)
    model = hookviz.wrap(seeded(Own), Preprocess(24, 24), name=f"my {BAD} net")
    return hookviz.make_atlas(model, root / "photos", root / "a.atlas", top=3, patch=20)


@pytest.fixture(scope="module")
def pages(atlas: hookviz.Atlas, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "of it"
    assert hookviz.save_atlas_pages(atlas, folder) == folder
    return folder


class Seen(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str, name: str) -> list[str]:
        return [value for each, has in self.tags if each == tag and (value := has.get(name))]


def test_every_link_and_picture_is_there_and_none_leads_elsewhere(pages: Path) -> None:
    files = {pages / "index.html", *pages.glob("layers/*.html")}
    assert len(files) == 3
    reached = {pages / "index.html"}
    for file in files:
        seen = Seen(file)
        targets = [*seen.all("a", "href"), *seen.all("img", "src")]
        assert not any(":" in each or each.startswith("/") for each in targets)
        ids = set(seen.all("li", "id"))
        for each in targets:
            path, _, anchor = unquote(each).partition("#")
            assert not anchor or anchor in ids
            if path:
                there = (file.parent / path).resolve()
                assert there.is_file()
                reached.add(there)
        assert not seen.all("script", "src")
        assert not seen.all("link", "src")
    assert {each.resolve() for each in files} <= reached
    pictures = {each.resolve() for each in pages.rglob("*.jpg")}
    assert pictures <= reached


def test_each_patch_is_the_atlas_s_with_its_value_and_its_image(
    atlas: hookviz.Atlas, pages: Path
) -> None:
    seen = Seen(pages / "layers" / "1.html")
    alts = seen.all("img", "alt")
    expected = [
        f"{best.image.name}: {number(best.value)} at row {best.cell[0]}, column {best.cell[1]}"
        for channel in range(5)
        for best in atlas.top_activations("second", channel)
    ]
    assert alts == expected
    for channel in range(5):
        with Image.open(pages / "layers" / "1" / f"{channel}.jpg") as file:
            row = np.asarray(file).astype(int)
        for rank, best in enumerate(atlas.top_activations("second", channel)):
            assert best.patch is not None
            height, width = (20 * each // max(best.patch.shape) for each in best.patch.shape[:2])
            shown = Image.fromarray(best.patch).resize((width, height), Image.Resampling.NEAREST)
            left, top = rank * _step(20) + (20 - width) // 2, (20 - height) // 2
            there = row[top : top + height, left : left + width]
            assert np.abs(there - np.asarray(shown)).mean() < 20  # JPEG's, of noise
            upside_down = np.abs(there - np.asarray(shown)[::-1]).mean()
            assert np.abs(there - np.asarray(shown)).mean() < 0.5 * upside_down


def test_names_are_text_and_every_sentence_is_there_in_every_language(pages: Path) -> None:
    for file in pages.rglob("*.html"):
        text = file.read_text("utf-8")
        assert BAD not in text
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        (data,) = re.findall(r'id="languages">(.*?)</script>', text)
        spoken = {each["language"]: each["words"] for each in json.loads(data)}
        assert {"en", "zh-CN"} <= spoken.keys()
        for tag, has in Seen(file).tags:
            if said := has.get("data-say"):
                assert said in spoken["zh-CN"], tag
    assert BAD in unescape((pages / "index.html").read_text("utf-8"))


class StoppedError(Exception):
    pass


def test_a_run_that_ends_early_leaves_nothing_and_the_older_pages(
    atlas: hookviz.Atlas, tmp_path: Path
) -> None:
    told: list[float] = []

    def stop(share: float) -> None:
        told.append(share)
        if share > 0.5:
            raise StoppedError

    with pytest.raises(StoppedError):
        hookviz.save_atlas_pages(atlas, tmp_path / "pages", progress=stop)
    assert list(tmp_path.iterdir()) == []
    assert 0 < told[0] < told[-1] < 1
    hookviz.save_atlas_pages(atlas, tmp_path / "pages")
    with pytest.raises(StoppedError):
        hookviz.save_atlas_pages(atlas, tmp_path / "pages", overwrite=True, progress=stop)
    assert (tmp_path / "pages" / "index.html").is_file()
    assert [each.name for each in tmp_path.iterdir()] == ["pages"]


def test_only_pages_of_an_atlas_are_overwritten_in_english(
    atlas: hookviz.Atlas, tmp_path: Path
) -> None:
    with speaking("zh_CN"):
        folder = hookviz.save_atlas_pages(atlas, tmp_path / "pages")
    assert "Channel 3" in (folder / "layers" / "1.html").read_text("utf-8")
    with pytest.raises(hookviz.SettingError, match="--overwrite put others"):
        hookviz.save_atlas_pages(atlas, folder)
    (folder / "old.html").write_text("")
    hookviz.save_atlas_pages(atlas, folder, overwrite=True)
    assert not (folder / "old.html").exists()
    (folder / "index.html").write_text("mine")
    with pytest.raises(hookviz.SettingError, match="no folder of an atlas's pages"):
        hookviz.save_atlas_pages(atlas, folder, overwrite=True)
    assert (folder / "index.html").read_text() == "mine"
    with pytest.raises(hookviz.SettingError, match="no folder of an atlas's pages"):
        hookviz.save_atlas_pages(atlas, folder / "index.html")
    with pytest.raises(hookviz.SettingError, match="can't be written"):
        hookviz.save_atlas_pages(atlas, folder / "index.html" / "below")


def test_patches_that_are_lost_or_were_never_there_are_said(
    atlas: hookviz.Atlas, tmp_path: Path
) -> None:
    model = hookviz.wrap(seeded(Own), Preprocess(24, 24))
    made = hookviz.make_atlas(model, [torch.ones(1, 3, 24, 24)], tmp_path / "t.atlas", top=2)
    folder = hookviz.save_atlas_pages(made, tmp_path / "pages")
    text = (folder / "layers" / "1.html").read_text("utf-8")
    assert "no patch</span>" in text
    assert not Seen(folder / "layers" / "1.html").all("img", "src")
    patches = atlas.path / "patches.bin"
    kept = patches.read_bytes()
    patches.unlink()
    try:
        with pytest.raises(hookviz.HookVizError, match="can't be read"):
            hookviz.save_atlas_pages(atlas, tmp_path / "others")
    finally:
        patches.write_bytes(kept)
    assert not (tmp_path / "others").exists()


def test_memory_holds_a_channel_and_not_a_layer(
    atlas: hookviz.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more patches are read at a time than one channel has."""
    read: list[int] = []
    by_atlas = hookviz.Atlas._read_patches

    def counted(self: hookviz.Atlas, numbers: list[int]) -> object:
        read.append(len(numbers))
        return by_atlas(self, numbers)

    monkeypatch.setattr(hookviz.Atlas, "_read_patches", counted)
    hookviz.save_atlas_pages(atlas, tmp_path / "pages")
    assert max(read) == 3
    assert len(read) >= 75
    with Image.open(io.BytesIO((tmp_path / "pages/layers/0/strip.jpg").read_bytes())) as strip:
        assert strip.width == 6 * _step(20)
