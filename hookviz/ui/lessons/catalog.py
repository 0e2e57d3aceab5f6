"""List the lessons, ours and those of a folder, and the live parts."""

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType

from hookviz.errors import LessonError
from hookviz.language.saying import say
from hookviz.lessons.lesson import Lesson, Question, Text, read_lesson
from hookviz.lessons.part import Part, lesson_error
from hookviz.paths import path_of
from hookviz.settings import ASSETS, settings
from hookviz.ui.lessons import parts as parts_package

_FOLDER = ASSETS / "lessons"
"""The lessons that ship with HookViz."""
_MOST = 200


@cache
def parts() -> Mapping[str, Part]:
    """Return every live part by its name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(parts_package.__path__))
    every = [part_module(name).PART for name in names]
    return MappingProxyType({part.name: part for part in every})


def part_module(part: str) -> ModuleType:
    """Return the module of a live part, with its ``PART`` and ``show``."""
    return import_module(f"{parts_package.__name__}.{part.replace('-', '_')}")


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in their order, ours before those of the settings' folder.

    Raises:
        LessonError: a file can't be used.
    """
    return read_lessons(settings().lessons)


def read_lessons(folder: str = "") -> tuple[Lesson, ...]:
    """Read our lessons and those of another folder, numbered from 1.

    Raises:
        LessonError: there is no such folder, it has no lesson, or a file can't be used.
    """
    files = sorted(_FOLDER.glob("*.md"))
    if folder:
        files += _files_of(path_of(folder))
    by_slug: dict[str, Lesson] = {}
    for file in files:
        lesson = read_lesson(file, parts())
        if lesson.slug in by_slug:
            message = say(
                "There is a lesson {slug} already, in {other_file}. Another name of the file "
                "works.",
                slug=lesson.slug,
                other_file=by_slug[lesson.slug].file.name,
            )
            raise lesson_error(file, 1, message)
        by_slug[lesson.slug] = replace(lesson, number=len(by_slug) + 1)
    return tuple(by_slug.values())


def _files_of(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise LessonError(say("There is no folder {folder}.", folder=str(folder)))
    files = sorted(folder.glob("*.md"))
    if not files:
        message = say(
            "{folder} has no lesson: a file whose name ends with .md.", folder=str(folder)
        )
        raise LessonError(message)
    if len(files) > _MOST:
        message = say("{folder} has more than {count} lessons.", folder=str(folder), count=_MOST)
        raise LessonError(message)
    return files


def words_of(lesson: Lesson) -> Iterator[tuple[str, int]]:
    """Yield the texts of a lesson for translation, each with its line in the file."""
    yield lesson.title, 1
    yield lesson.summary, 1
    if lesson.question:
        yield lesson.question, 1
    for step in lesson.steps:
        yield step.title, step.line
        for block in step.blocks:
            match block:
                case Text(words, line) if not words.startswith(("```", "~~~")):
                    yield words, line
                case Question(words, answers, line):
                    yield words, line
                    for answer in answers:
                        yield answer.words, line
                        yield answer.why, line
