"""Read a lesson's file and check it whole: an error names its line before anybody sees it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from markdown_it.token import Token

from hookviz.errors import LessonError
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.lessons import prose
from hookviz.lessons.blocks import Value, read_question, read_values
from hookviz.lessons.lesson import Block, Lesson, Live, Step, Text
from hookviz.lessons.lesson_error import did_you_mean, lesson_error
from hookviz.lessons.part import parts
from hookviz.models import catalog
from hookviz.settings import settings

LARGEST = 50_000
"""Bytes that a lesson's file may have; five hundred words are four thousand."""
_MOST_STEPS = 40
_FRONT = "---"
KEYS = {
    "title": "the lesson's name",
    "summary": "one sentence on what one can do after it",
    "minutes": "how long it takes, a whole number; 5 where it is missing",
    "model": "the model where the learner has chosen none, as the page lists it",
    "sample": "the sample image where the learner has chosen none",
}
"""What the front matter may have, and what each is."""
_FILE_NAME = re.compile(r"(?:\d+-)?(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)\.md")
_RESERVED = "all"  # the link that lists all lessons


def read_lesson(file: Path, number: int = 0) -> Lesson:
    """Read the lesson in a file.

    Raises:
        LessonError: it can't be read or is no lesson; the message names file and line.
    """
    named = _FILE_NAME.fullmatch(file.name)
    if named is None or named["slug"] == _RESERVED:
        message = say(
            "A lesson's file has a name such as 03-my-lesson.md: small letters a to z, digits and "
            "hyphens."
        )
        raise lesson_error(file, 1, message)
    return parse_lesson(_text_of(file), file, named["slug"], number)


def parse_lesson(text: str, file: Path, slug: str, number: int = 0) -> Lesson:
    """Parse the text of a lesson's file; see `read_lesson`."""
    lines = text.splitlines()
    front, begin = _front_matter(lines, file)
    steps = _steps(lines[begin:], file, begin + 1)
    _check_defaults(front, file)
    minutes = front.get("minutes", Value("5", 1))
    if not re.fullmatch(r"[1-9]\d{0,2}", minutes.text, re.ASCII):
        message = say("minutes is {minutes!r}, and should be a whole number.", minutes=minutes.text)
        raise lesson_error(file, minutes.line, message)
    return Lesson(
        slug=slug,
        title=front["title"].text,
        summary=front["summary"].text if "summary" in front else "",
        minutes=int(minutes.text),
        steps=steps,
        defaults={key: front[key].text for key in ("model", "sample") if key in front},
        file=file,
        number=number,
    )


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as source:
            data = source.read(LARGEST + 1)
    except OSError as error:
        raise LessonError(
            say("{file} can't be read: {reason}.", file=str(file), reason=error.strerror or "")
        ) from error
    if len(data) > LARGEST:
        message = say("The file has more than {count:,} bytes, which is too much.", count=LARGEST)
        raise lesson_error(file, 1, message)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = say("This is not UTF-8 text. Save the file with that encoding.")
        raise lesson_error(file, data.count(b"\n", 0, error.start) + 1, message) from error
    control = re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text.replace("\r\n", "\n"))
    if control:
        line = text.count("\n", 0, control.start()) + 1
        raise lesson_error(file, line, say("Here stands a control character, which is no text."))
    return text


def _front_matter(lines: Sequence[str], file: Path) -> tuple[Mapping[str, Value], int]:
    """Return the values at the top, and how many lines they take."""
    if not lines or lines[0].strip() != _FRONT:
        message = say(
            "A lesson begins with its front matter: a line of three hyphens, lines such as "
            "title: My lesson, and three hyphens again."
        )
        raise lesson_error(file, 1, message)
    ends = [index for index, line in enumerate(lines) if index and line.strip() == _FRONT]
    if not ends:
        raise lesson_error(file, 1, say("The front matter has no end: a line of three hyphens."))
    front = read_values("\n".join(lines[1 : ends[0]]), file, 2)
    for name, value in front.items():
        if name not in KEYS:
            message = say("The front matter has no {name!r}.", name=name)
            raise lesson_error(file, value.line, f"{message} {did_you_mean(name, KEYS)}")
    if "title" not in front or not front["title"].text.strip():
        raise lesson_error(file, 1, say("The front matter has no title. Write: title: My lesson"))
    return front, ends[0] + 1


def _check_defaults(front: Mapping[str, Value], file: Path) -> None:
    """Check that the model and the sample exist; any model may be one of the starter's."""
    sample, model = front.get("sample"), front.get("model")
    known_samples = [sample_image.name for sample_image in samples()]
    if sample is not None and sample.text not in known_samples:
        message = say("There is no sample image {name!r}.", name=sample.text)
        raise lesson_error(
            file, sample.line, f"{message} {did_you_mean(sample.text, known_samples)}"
        )
    titles = [spec.title for spec in catalog.described_models()]
    if model is not None and model.text not in titles and not settings().model:
        message = say("There is no model {name!r}.", name=model.text)
        raise lesson_error(file, model.line, f"{message} {did_you_mean(model.text, titles)}")


def _steps(lines: Sequence[str], file: Path, line: int) -> tuple[Step, ...]:
    """Return the slides in the lines from `line` of the file on."""
    tokens = prose.parsed("\n".join(lines))
    prose.check([token for token in tokens if not _is_own(token)], file, line)
    steps: list[Step] = []
    blocks: list[Block] = []
    title, began = "", 0
    for position, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            if token.level and _is_own(token):
                message = say("A live part or question stands at the left margin, in no list.")
                raise lesson_error(file, line + (token.map or [0])[0], message)
            continue
        at = line + token.map[0]
        if token.type == "heading_open" and token.tag == "h1":
            if began:
                steps.append(_step(title, blocks, file, began))
            title, began, blocks = tokens[position + 1].content, at, []
            continue
        if not began:
            message = say("Before the first step stands text. A step begins with: # Its heading")
            raise lesson_error(file, at, message)
        blocks.append(_block(token, lines, file, line))
    if not began:
        raise lesson_error(
            file, line, say("The lesson has no step. A step begins with: # Its heading")
        )
    steps.append(_step(title, blocks, file, began))
    if len(steps) > _MOST_STEPS:
        message = say("The lesson has more than {count} steps.", count=_MOST_STEPS)
        raise lesson_error(file, steps[_MOST_STEPS].line, message)
    return tuple(steps)


def _step(title: str, blocks: Sequence[Block], file: Path, line: int) -> Step:
    if not title.strip():
        raise lesson_error(file, line, say("This heading has no words."))
    if not blocks:
        raise lesson_error(file, line, say("Under this heading stands nothing."))
    return Step(title, tuple(blocks), line)


def _is_own(token: Token) -> bool:
    """Return whether a token is a block of ours: a live part or a question."""
    words = token.info.split()
    return token.type == "fence" and bool(words) and words[0] in ("live", "question")


def _block(token: Token, lines: Sequence[str], file: Path, line: int) -> Block:
    """Parse one block of the file; `line` is the one at which `lines` begin."""
    first, end = token.map or (0, 0)
    at = line + first
    if not _is_own(token):
        own = [line_of_text.rstrip() for line_of_text in lines[first:end]]
        while own and not own[-1]:
            own.pop()
        joined = " ".join(map(str.strip, own)) if token.type == "paragraph_open" else "\n".join(own)
        return Text(joined, at)
    if (
        not re.fullmatch(rf"\s*{re.escape(token.markup)}[`~]*\s*", lines[end - 1])
        or end - first < 2
    ):
        message = say("This block has no end: a line of {fence}", fence=token.markup)
        raise lesson_error(file, at, message)
    words = token.info.split()
    if words[0] == "question":
        return read_question(token.content, file, at)
    return _live(words[1:], token.content, file, at)


def _live(name: Sequence[str], options: str, file: Path, line: int) -> Live:
    known = parts()
    if len(name) != 1:
        message = say("After live stands the name of one part.")
        raise lesson_error(file, line, f"{message} {did_you_mean(' '.join(name), known)}")
    part = known.get(name[0])
    if part is None:
        message = say("There is no live part called {name!r}.", name=name[0])
        raise lesson_error(file, line, f"{message} {did_you_mean(name[0], known)}")
    values = read_values(options, file, line + 1)
    declared = {option.name: option for option in part.options}
    for option_name, value in values.items():
        if option_name not in declared:
            message = say(
                "The part {part} has no option {name!r}.", part=part.name, name=option_name
            )
            raise lesson_error(
                file, value.line, f"{message} {did_you_mean(option_name, declared)}".strip()
            )
        wrong = declared[option_name].check(value.text)
        if wrong:
            message = say(
                "{name}: {value!r} does not work for the part {part}. {reason}",
                name=option_name,
                value=value.text,
                part=part.name,
                reason=wrong,
            )
            raise lesson_error(file, value.line, message)
    chosen = {}
    for option in part.options:
        value_or_default = values[option.name].text if option.name in values else option.default
        if value_or_default is None:
            message = say(
                "The part {part} needs the option {name}.", part=part.name, name=option.name
            )
            raise lesson_error(file, line, f"{message} {option.help}")
        chosen[option.name] = value_or_default
    return Live(part.name, chosen, line)
