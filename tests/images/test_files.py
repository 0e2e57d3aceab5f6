import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

import hookviz
from hookviz.errors import HookVizError, ImageError
from hookviz.images import files
from hookviz.images.files import ImageUrl, expand, expand_url, is_url
from tests.cli.command import save_pictures
from tests.pictures import encoded, picture


class Store(BaseHTTPRequestHandler):
    """As much of an object store as reading takes: its keys, and their bytes."""

    objects: dict[str, bytes]

    def do_HEAD(self) -> None:
        self._answer(self.objects.get(self._key()))

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" not in query:
            self._answer(self.objects.get(self._key()))
            return
        [prefix], [delimiter] = query.get("prefix", [""]), query.get("delimiter", [""])
        keys = [key for key in sorted(self.objects) if key.startswith(prefix)]
        deep = {
            prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter
            for key in keys
            if delimiter and delimiter in key[len(prefix) :]
        }
        shallow = [key for key in keys if not any(key.startswith(top) for top in deep)]
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in shallow
        )
        tops = "".join(
            f"<CommonPrefixes><Prefix>{escape(top)}</Prefix></CommonPrefixes>" for top in deep
        )
        xml = (
            f'<?xml version="1.0"?><ListBucketResult><Name>photos</Name><Prefix>{escape(prefix)}'
            f"</Prefix><KeyCount>{len(shallow)}</KeyCount><MaxKeys>1000</MaxKeys>"
            f"<IsTruncated>false</IsTruncated>{contents}{tops}</ListBucketResult>"
        )
        self._answer(xml.encode(), "application/xml")

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/photos").lstrip("/")

    def _answer(self, data: bytes | None, kind: str = "application/octet-stream") -> None:
        whole = data or b""
        part = whole
        self.send_response(404 if data is None else 206 if self.headers.get("Range") else 200)
        if data is not None and (asked := self.headers.get("Range")):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            part = whole[int(first) : int(last) + 1]
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(part)

    def log_message(self, *_args: object) -> None: ...


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The query of URLs in an object store of this machine, ``s3://photos/…?…``."""
    pytest.importorskip("pyarrow.fs")
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    objects = {
        "cats/a b.png": encoded(picture(1)),
        "cats/2.png": encoded(picture(2)),
        "dogs/3.png": encoded(picture(3)),
        "notes.txt": b"nothing",
        "broken.png": b"no image",
    }
    handler = type("Handler", (Store,), {"objects": objects})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"scheme=http&endpoint_override=127.0.0.1:{server.server_port}&region=us-east-1"
    server.shutdown()
    server.server_close()
    thread.join()
    files._file_system.cache_clear()


def test_images_of_an_object_store_are_listed_and_read(store: str) -> None:
    assert is_url("s3://photos/1.png")
    assert is_url(ImageUrl("gs://photos/1.png"))
    for other in ("photos/1.png", "C:\\photos", "c://x", Path("s3://photos"), b"s3://", None):
        assert not is_url(other)
    top = f"s3://key:secret@photos?{store}"
    assert [way for way, _ in expand_url(top, inside=True)] == [
        "broken.png",
        "cats/2.png",
        "cats/a b.png",
        "dogs/3.png",
    ]
    listed = expand([f"s3://key:secret@photos/cats/?{store}"])
    assert [file.name for file in listed] == ["2.png", "a b.png"]
    assert isinstance(listed[1], ImageUrl)
    image = hookviz.read_image(listed[1].url)
    assert image.name == "a b.png"
    assert image.digest == hookviz.read_image(encoded(picture(1))).digest
    for name in ("gone.png", "broken.png"):
        with pytest.raises(ImageError, match=name) as caught:
            hookviz.read_image(f"s3://key:secret@photos/{name}?{store}")
        assert "secret" not in str(caught.value)
    assert str(listed[1]) == "s3://photos/cats/a b.png"
    assert "secret" not in repr(listed)


def test_an_atlas_of_an_object_store_has_its_folders_as_classes(
    store: str, tiny: hookviz.Model, tmp_path: Path
) -> None:
    top = f"s3://key:secret@photos?{store}"
    atlas = hookviz.make_atlas(tiny, [f"{top}"], tmp_path / "a.atlas", top=2)
    assert dict(atlas.counts) == {"images": 4, "tallied": 3, "repeated": 0, "left_out": 1}
    assert list(atlas.left_out) == ["broken.png"]
    for entry in atlas.top_activations("conv1", 0):
        assert entry.image.name in {"cats/2.png", "cats/a b.png", "dogs/3.png"}
        assert entry.patch is not None
    for file in atlas.path.iterdir():
        assert b"secret" not in file.read_bytes()


def test_files_of_this_machine_by_url_and_none_of_schemes_that_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow.fs")
    (tmp_path / "deep").mkdir()
    picture(1).save(tmp_path / "a #1.png")
    picture(2).save(tmp_path / "deep" / "2.png")
    top = tmp_path.as_uri()
    [one] = expand([top])
    assert isinstance(one, ImageUrl)
    assert (one.name, one.stem) == ("a #1.png", "a #1")
    assert [way for way, _ in expand_url(top, inside=True)] == ["a #1.png", "deep/2.png"]
    assert hookviz.read_image(one).digest == hookviz.read_image(tmp_path / "a #1.png").digest
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImageError, match="gives no image"):
        expand([f"{top}/empty"])
    with pytest.raises(ImageError, match="can't be listed"):
        expand([f"{top}/nothing"])
    with pytest.raises(HookVizError, match=r"'http://example.org/' can't be reached.*s3://, gs://"):
        hookviz.read_image("http://example.org/cat.jpg")

    def missing(_name: str) -> None:
        raise ModuleNotFoundError("No module named 'pyarrow'")

    monkeypatch.setattr(files, "import_module", missing)
    with pytest.raises(HookVizError, match=r"pip install 'hookviz\[ray\]'"):
        hookviz.read_image("s3://photos/cat.jpg")


def test_a_folder_or_a_pattern_gives_its_images_sorted_and_each_once(tmp_path: Path) -> None:
    for empty, kind in ((f"{tmp_path}", "folder"), (f"{tmp_path}/*.png", "pattern")):
        with pytest.raises(ImageError, match=rf"{kind} .* gives no image"):
            expand([empty])
    first, second, deep = save_pictures(tmp_path, "a.png", "b.PNG", "deep/er/c.png")
    (tmp_path / "a.txt").write_text("no image")
    (tmp_path / "folder.png").mkdir()
    assert expand([str(tmp_path)]) == expand([f"{tmp_path}/*"]) == (first, second)
    assert expand([f"{tmp_path}/[bc].[pP]?[gG]", str(second), str(first)]) == (second, first)
    assert expand([f"{tmp_path}/**/*.png"]) == (first, deep)
    [odd] = save_pictures(tmp_path, "[1].png")  # a file named in full is taken as it is
    assert expand([str(odd)]) == (odd,)
    assert expand(["missing.png"]) == (Path("missing.png"),)


def test_folders_within_and_links_in_a_circle(tmp_path: Path) -> None:
    near, far = save_pictures(tmp_path, "a.png", "b/c/d.png")
    (tmp_path / "b" / "again").symlink_to(tmp_path)
    (tmp_path / "round.png").symlink_to("round.png")
    (tmp_path / "gone.png").symlink_to("nowhere.png")
    assert expand([str(tmp_path)], inside=True) == (near, far)
    assert expand([str(tmp_path)]) == (near,)
