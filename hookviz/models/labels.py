"""Read a person's file of class names, in any of the forms that such files have."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hookviz import shallow_json
from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import say
from hookviz.paths import fault_of, path_of
from hookviz.reader import wall

if TYPE_CHECKING:
    from mmap import mmap

    from hookviz.reader.answer_file import AnswerWriter

_MOST_LABELS = 4_000_000  # bytes of a file of labels; ImageNet-21K's takes 0.5 MB
_MOST_READ = 8 * _MOST_LABELS  # bytes that they are read as: 1e15 becomes eighteen signs
_SECONDS = 10  # that a file of that size may take behind the wall


def read_labels(source: Path | bytes, name: str = "") -> tuple[str, ...]:
    """Read a label per class, in the order of the network's outputs.

    Uploaded bytes are read behind the wall where it is up.

    Args:
        source: a text file with a label per line (a number that counts them, or a synset's code,
            is left out), or JSON: a list, ``{"0": "cat"}``, ``{"cat": 0}`` or Keras's
            ``{"0": ["n02123045", "tabby"]}``; also as ``id2label`` or ``classes`` in a larger one.
        name: of the file, for errors; the path's name by default.

    Raises:
        WeightsError: it can't be read, or its numbers are not 0, 1, 2 and so on.
    """
    name = shorten(name or (source.name if isinstance(source, Path) else say("the file of labels")))
    if isinstance(source, Path):
        return _read(_bytes(path_of(source), name), name)
    if not wall.is_up():
        return _read(source, name)
    memory = wall.memory_for_text(min(len(source), _MOST_LABELS))
    answer = wall.read("labels", source, {"name": name}, memory=memory, seconds=_SECONDS)
    lines = answer.arrays.get("lines")
    if lines is None or lines.dtype != "uint8" or lines.size > _MOST_READ:
        raise WeightsError(wall.crashed(name))
    return tuple(lines.tobytes().decode(errors="replace").split("\n"))


def read_behind(
    data: "mmap | bytes", options: Mapping[str, Any], answer: "AnswerWriter"
) -> Mapping[str, Any]:
    """Read a file of labels and answer them a line each; the job that is run behind the wall."""
    labels = _read(bytes(data), options["name"])
    answer.write("lines", np.frombuffer("\n".join(labels).encode(), np.uint8))
    return {}


def _read(data: bytes, name: str) -> tuple[str, ...]:
    text = _text(data, name)
    labels: Iterable[Any]
    try:
        content = shallow_json.parse(text)
    except ValueError as error:
        if name.casefold().endswith(".json") and text.strip():
            raise WeightsError(
                say("{name} is no JSON: {error}.", name=name, error=shorten(str(error), 200))
            ) from error
        labels = _lines(text)
    else:
        labels = _listed(content, name) if isinstance(content, dict | list) else _lines(text)
    tidy = tuple(
        # JSON can hold half a letter ("\\ud800"), which can't be written to a page or a file
        shorten(" ".join(_label(label, name).split()), 200).encode("utf-8", "replace").decode()
        for label in labels
    )
    if not any(tidy):
        raise WeightsError(say("{name} holds no labels; it should have one per class.", name=name))
    return tidy


def _bytes(source: Path, name: str) -> bytes:
    try:
        if fault := fault_of(source):
            raise WeightsError(
                say(
                    "{name} can't be read: it is {fault}. Labels come from a text file or JSON.",
                    name=name,
                    fault=fault,
                )
            )
        with source.open("rb") as stream:
            return stream.read(_MOST_LABELS + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise WeightsError(
            say("{name} can't be read: {reason}.", name=name, reason=reason)
        ) from error


def _text(data: bytes, name: str) -> str:
    if len(data) > _MOST_LABELS:
        raise WeightsError(
            say(
                "{name} is larger than {limit:,} bytes, too large for labels.",
                name=name,
                limit=_MOST_LABELS,
            )
        )
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # as Windows' Notepad may save it
    try:
        return data.decode("utf-16" if wide else "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise WeightsError(
            say("{name} is not text in UTF-8, so it holds no labels.", name=name)
        ) from error


def _lines(text: str) -> Iterator[str]:
    """Read one label per line, without numbers before them where these just count the lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").rstrip().split("\n")
    # Nothing before a number that can be split in two ways: such a search takes hours of spaces.
    number = re.compile(r"\{?\s*(\d{1,9})\s*[\s:,;]\s*(\S.*)$")
    numbered = [number.match(line.strip()) for line in lines]
    counted = all(match and int(match[1]) == row for row, match in enumerate(numbered))
    for line, match in zip(lines, numbered, strict=True):
        label = match[2].rstrip(" ,}").strip("'\"") if counted and match else line
        yield re.sub(r"^\s*n\d{8}[\s:,]+", "", label)


def _listed(content: Any, name: str) -> Iterable[Any]:
    """Read the labels in a JSON list or object, in order."""
    if isinstance(content, list):
        return content
    for key in ("id2label", "label2id", "class_to_idx", "classes", "categories", "labels", "names"):
        if isinstance(content.get(key), dict | list):
            return _listed(content[key], name)
    if content and all(type(value) is int for value in content.values()):
        pairs = [(value, label) for label, value in content.items()]
    elif all(re.fullmatch(r"\d{1,9}", key, re.ASCII) for key in content):
        pairs = [(int(key), label) for key, label in content.items()]
    else:
        raise WeightsError(
            say(
                '{name} is JSON, but neither a list of labels nor {{"0": "cat"}} nor {{"cat": 0}}.',
                name=name,
            )
        )
    pairs.sort(key=lambda pair: pair[0])
    numbers = [number for number, _ in pairs]
    if numbers != list(range(len(numbers))):
        raise WeightsError(
            say(
                "{name} numbers its {count} labels from {first} to {last}; "
                "they should be numbered from 0 to {expected_last}, each once.",
                name=name,
                count=len(numbers),
                first=numbers[0],
                last=numbers[-1],
                expected_last=len(numbers) - 1,
            )
        )
    return [label for _, label in pairs]


def _label(item: Any, name: str) -> str:
    """Read a label of JSON: a word, a number, a synset's code with its word, or a named object."""
    if isinstance(item, dict):
        item = item.get("name", item.get("label"))
    if isinstance(item, list) and item:
        item = item[-1]
    if not isinstance(item, str | int | float):
        raise WeightsError(
            say("{name} has {item} where a label should be.", name=name, item=shorten(repr(item)))
        )
    return str(item)
