import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookviz
from hookviz.models.labels import read_labels
from hookviz.reader import wall


@pytest.mark.parametrize(
    "content",
    [
        "cat\ndog\nbarn owl",
        "cat\ndog\nbarn owl\n\n \n",
        "\ufeffcat\r\ndog\r\nbarn   owl\r\n",
        "cat\rdog\rbarn owl\r",
        "0 cat\n1 dog\n2 barn owl\n",
        "0: cat\n1: dog\n2: barn owl",
        "0,cat\n1,dog\n2,barn owl",
        "{0: 'cat',\n 1: 'dog',\n 2: 'barn owl'}",
        "n02123045 cat\nn02084071 dog\nn01621127 barn owl",
        '["cat", "dog", "barn owl"]',
        '\n{"0": "cat", "2": "barn owl", "1": "dog"}',
        '{"barn owl": 2, "cat": 0, "dog": 1}',
        '{"0": ["n02123045", "cat"], "1": ["n02084071", "dog"], "2": ["n01621127", "barn owl"]}',
        '{"id2label": {"0": "cat", "1": "dog", "2": "barn owl"}, "label2id": {}}',
        '{"classes": [{"name": "cat"}, {"name": "dog"}, {"label": "barn owl"}]}',
    ],
)
@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_files_of_labels(content: str, coding: str, tmp_path: Path) -> None:
    (tmp_path / "labels").write_bytes(content.encode(coding))
    assert read_labels(tmp_path / "labels") == ("cat", "dog", "barn owl")
    assert read_labels(content.encode(coding), "up.txt") == ("cat", "dog", "barn owl")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1 dollar\n2 cents", ("1 dollar", "2 cents")),  # numbers that count from elsewhere
        ("[unknown]\nn0 way", ("[unknown]", "n0 way")),
        ("0\n1\n2", ("0", "1", "2")),
        ("12", ("12",)),
        ("a\n\nb", ("a", "", "b")),
        ("[0, 1]", ("0", "1")),
        ("Käse\n猫", ("Käse", "猫")),
        ("x" * 5000, ("x" * 99 + "…" + "x" * 99,)),
    ],
)
def test_labels_that_look_like_something_else(content: str, expected: tuple[str, ...]) -> None:
    assert read_labels(content.encode(), "up.txt") == expected
    # A search that can divide lines of spaces in several ways takes hours for these.
    lines = [" " * 300_000 + "x", "1" + " " * 300_000 + "y", "{" + " " * 300_000 + ","]
    labels = read_labels("\n".join(lines).encode())
    assert (labels[0], len(labels)) == ("x", 3)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no labels"),
        (b"\n \n", "holds no labels"),
        (b"[]", "holds no labels"),
        (b"\xff\x00\xfe", "not text in UTF-8"),
        (b"\x80\x02}q", "not text in UTF-8"),
        (b"a\n" * 2_000_001, "larger than 4,000,000 bytes"),
        (b'{"1": "cat", "2": "dog"}', "numbers its 2 labels from 1 to 2; .* from 0 to 1"),
        (b'{"cat": 0, "dog": 0}', "numbers its 2 labels from 0 to 0"),
        (b'{"0": "cat", "2": "dog"}', "from 0 to 2"),
        (b'{"cat": "dog"}', 'neither a list of labels nor {"0": "cat"}'),
        (b"{}", "holds no labels|neither"),
        (b"[[]]", r"has \[\] where a label should be"),
        (b"[null]", "has None where a label should be"),
        (b'[["a", ["b"]]]', r"has \['b'\] where a label should be"),
        (b"[" * 100_000, "holds no labels|no JSON|where a label"),
        (b"[" + b"9" * 5000 + b"]", "no JSON|where a label|holds no labels"),
    ],
)
def test_files_that_hold_no_labels(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "up.json").write_bytes(content)
    for source in (content, tmp_path / "up.json"):
        with pytest.raises(hookviz.WeightsError, match=rf"^up\.json .*({reason})"):
            read_labels(source, "up.json")


@pytest.mark.timeout(20)
def test_a_broken_file_of_labels_is_no_list_of_lines_and_a_pipe_is_refused_at_once(
    tmp_path: Path,
) -> None:
    with pytest.raises(hookviz.WeightsError, match=r"up\.json is no JSON: Expecting"):
        read_labels(json.dumps(["a", "b"])[:-1].encode(), "up.json")
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)  # to open it would wait for ever
    for path, reason in (
        (Path("none.txt"), r"none\.txt can't be read: No such file"),
        (Path("a\0b.txt"), "can't be read: embedded null byte"),
        (pipe, r"pipe\.txt can't be read: it is no ordinary"),
        (tmp_path, "it is a folder"),
    ):
        with pytest.raises(hookviz.WeightsError, match=reason):
            read_labels(path)


@pytest.fixture
def behind_the_wall() -> Iterator[None]:
    wall.put_up()
    assert wall.is_up()
    yield
    wall.take_down()


@pytest.mark.usefixtures("behind_the_wall")
def test_what_is_sent_is_read_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.models.labels._read", None)  # of this process
    kinds = (
        b"0 cat\n1 \n2 barn owl",
        json.dumps([1e15] * 200_000).encode(),
        "喵\n\n汪".encode("utf-16"),
    )
    assert [read_labels(each, "up.txt")[::2] for each in kinds] == [
        ("0 cat", "2 barn owl"),
        ("1000000000000000.0",) * 100_000,
        ("喵", "汪"),
    ]
    with pytest.raises(hookviz.WeightsError, match=r"^up\.json is no JSON: "):
        read_labels(b'["cat"', "up.json")
    with pytest.raises(hookviz.WeightsError, match="larger than 4,000,000 bytes"):
        read_labels(b"a\n" * 2_000_001, "up.txt")
