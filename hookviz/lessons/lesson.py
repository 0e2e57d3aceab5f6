"""Define what a lesson is, and read it from its file: steps of text, live parts and questions.

A file is checked as a whole: an error names its line before anybody sees the lesson.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from markdown_it.token import Token
from yaml.nodes import MappingNode, Node, ScalarNode

from hookviz.errors import LessonError
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.lessons import prose
from hookviz.lessons.part import Part, did_you_mean, lesson_error
from hookviz.models import catalog
from hookviz.settings import settings


@dataclass(frozen=True, slots=True)
class Text:
    """A block of Markdown: a paragraph, a list, a table.

    Attributes:
        words: as the file has it, with the names of facts in braces, such as ``{channels}``.
        line: of the file, from 1.
    """

    words: str
    line: int


@dataclass(frozen=True, slots=True)
class Live:
    """A live part of a lesson.

    Attributes:
        part: one of `hookviz.ui.lessons.parts`.
        options: what the file sets, by name, checked and with the defaults filled in.
        line: of the file, from 1.
    """

    part: Part
    options: Mapping[str, str]
    line: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that can be picked: what it says, whether it is right, and why or why not."""

    words: str
    right: bool
    why: str


@dataclass(frozen=True, slots=True)
class Question:
    """A prediction to make before what follows it is shown.

    Attributes:
        words: what is asked.
        answers: two to six, at least one of them right.
        line: of the file, from 1.
    """

    words: str
    answers: tuple[Answer, ...]
    line: int


Block = Text | Live | Question


@dataclass(frozen=True, slots=True)
class Step:
    """A slide: a heading and its blocks. What follows a question waits for the answer."""

    title: str
    blocks: tuple[Block, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as its file has it: a title, its slides, and the model and image to open it with.

    Attributes:
        slug: the file's name without its number and ending; the link has it.
        title: its name.
        summary: one sentence: what one can do after it.
        minutes: how long it takes.
        steps: its slides in order.
        defaults: what the link has that opens it: ``model``, ``sample``, where the file names them.
        file: where it was read.
        number: its place among all lessons, from 1.
        question: what the list of lessons asks.
    """

    slug: str
    title: str
    summary: str
    minutes: int
    steps: tuple[Step, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)
    file: Path = Path()
    number: int = 0
    question: str = ""

    @property
    def picture(self) -> Path | None:
        """The JPEG file of its name beside it, for the list of lessons; None without one."""
        picture = self.file.parent / "pictures" / f"{self.slug}.jpg"
        return picture if picture.is_file() else None


LARGEST = 50_000
"""Bytes that a lesson's file may have; five hundred words are four thousand."""
_MOST_STEPS = 40
_FRONT = "---"
_FEWEST_ANSWERS, _MOST_ANSWERS = 2, 6
_LONGEST = 4000  # characters
_ANSWER = re.compile(r"[-*]\s+\[(?P<right>[ xX])\]\s*(?P<words>.*)")
_KEYS = {
    "title": "the lesson's name",
    "summary": "one sentence on what one can do after it",
    "question": "what the list of lessons asks",
    "minutes": "how long it takes, a whole number; 5 where it is missing",
    "model": "the model where the learner has chosen none, as the page lists it",
    "sample": "the sample image where the learner has chosen none",
}
"""What the front matter may have, and what each is."""
_FILE_NAME = re.compile(r"(?:\d+-)?(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)\.md")
_RESERVED = "all"  # the link that lists all lessons


@dataclass(frozen=True, slots=True)
class Value:
    """What stands behind a colon: the text as written, and its line in the file, from 1."""

    text: str
    line: int


def read_lesson(file: Path, parts: Mapping[str, Part]) -> Lesson:
    """Read the lesson in a Markdown file; `parts` are the live parts that it can have, by name.

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
    return parse_lesson(_text_of(file), file, named["slug"], parts)


def parse_lesson(text: str, file: Path, slug: str, parts: Mapping[str, Part]) -> Lesson:
    """Parse the text of a lesson's file; see `read_lesson`."""
    lines = text.splitlines()
    front, begin = _front_matter(lines, file)
    steps = _steps(lines[begin:], file, begin + 1, parts)
    _check_defaults(front, file)
    minutes = front.get("minutes", Value("5", 1))
    if not re.fullmatch(r"[1-9]\d{0,2}", minutes.text, re.ASCII):
        message = say("minutes is {minutes!r}, and should be a whole number.", minutes=minutes.text)
        raise lesson_error(file, minutes.line, message)
    return Lesson(
        slug=slug,
        title=front["title"].text,
        summary=front["summary"].text if "summary" in front else "",
        question=front["question"].text if "question" in front else "",
        minutes=int(minutes.text),
        steps=steps,
        defaults={key: front[key].text for key in ("model", "sample") if key in front},
        file=file,
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
        if name not in _KEYS:
            message = say("The front matter has no {name!r}.", name=name)
            raise lesson_error(file, value.line, f"{message} {did_you_mean(name, _KEYS)}")
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


def _steps(
    lines: Sequence[str], file: Path, line: int, parts: Mapping[str, Part]
) -> tuple[Step, ...]:
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
        blocks.append(_block(token, lines, file, line, parts))
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


def _block(
    token: Token, lines: Sequence[str], file: Path, line: int, parts: Mapping[str, Part]
) -> Block:
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
    return _read_live(words[1:], token.content, file, at, parts)


def _read_live(
    name: Sequence[str], options: str, file: Path, line: int, parts: Mapping[str, Part]
) -> Live:
    if len(name) != 1:
        message = say("After live stands the name of one part.")
        raise lesson_error(file, line, f"{message} {did_you_mean(' '.join(name), parts)}")
    part = parts.get(name[0])
    if part is None:
        message = say("There is no live part called {name!r}.", name=name[0])
        raise lesson_error(file, line, f"{message} {did_you_mean(name[0], parts)}")
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
    return Live(part, chosen, line)


def read_values(text: str, file: Path, line: int) -> Mapping[str, Value]:
    """Return the values of a text by name; `text` begins at `line` of the file.

    The YAML is parsed and never constructed, so that no tag in a teacher's file can make an object
    and no alias can fill the memory.

    Raises:
        LessonError: it is not such lines.
    """
    if len(text) > _LONGEST:
        raise lesson_error(file, line, say("These lines are longer than a lesson needs."))
    try:
        top = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        wrong = getattr(error, "problem", None) or say("it is nested too deep")
        message = say("This can't be read as YAML: {reason}.", reason=wrong)
        raise lesson_error(file, line + (mark.line if mark else 0), message) from error
    if top is None:
        return {}
    if not isinstance(top, MappingNode):
        message = say("Lines of the form name: value belong here.")
        raise lesson_error(file, line + top.start_mark.line, message)
    values: dict[str, Value] = {}
    for key, value in top.value:
        line_number = line + key.start_mark.line
        name = _scalar(key, file, line_number)
        if name in values:
            raise lesson_error(file, line_number, say("{name} stands here twice.", name=name))
        values[name] = Value(_scalar(value, file, line_number), line_number)
    return values


def _scalar(node: Node, file: Path, line: int) -> str:
    """Return the text of a node.

    Raises:
        LessonError: it is a list, a mapping, or of a type of somebody's own.
    """
    if isinstance(node, ScalarNode) and node.tag.startswith("tag:yaml.org,2002:"):
        kind = node.tag.rpartition(":")[2]
        if kind in ("str", "int", "float", "bool", "null", "timestamp"):
            return str(node.value)
    message = say("Only plain words and numbers can stand behind a name here.")
    raise lesson_error(file, line, message)


def read_question(text: str, file: Path, line: int) -> Question:
    """Return the question in a block that begins at `line` of the file, its text on the line below.

    Raises:
        LessonError: it has no words, no right answer, too few or too many, or one without a reason.
    """
    question: list[tuple[str, int]] = []
    answers: list[tuple[bool, list[str], list[str], int]] = []
    for line_number, text_line in enumerate(text.splitlines(), line + 1):
        answer = _ANSWER.fullmatch(text_line.rstrip())
        if answer:
            answers.append((answer["right"] != " ", [answer["words"]], [], line_number))
        elif not text_line.strip():
            continue
        elif not answers:
            question.append((text_line.strip(), line_number))
        elif text_line[:1].isspace():
            answers[-1][2].append(text_line.strip())
        else:
            message = say(
                "After the first answer stand answers alone, such as - [x] Yes or - [ ] No, each "
                "with its reason on an indented line below it."
            )
            raise lesson_error(file, line_number, message)
    if not question:
        raise lesson_error(file, line, say("The question has no words."))
    if not _FEWEST_ANSWERS <= len(answers) <= _MOST_ANSWERS:
        message = say(
            "The question has {count} answers; {minimum} to {maximum} work, each a line such as "
            "- [x] Yes or - [ ] No.",
            count=len(answers),
            minimum=_FEWEST_ANSWERS,
            maximum=_MOST_ANSWERS,
        )
        raise lesson_error(file, line, message)
    if not any(right for right, *_ in answers):
        raise lesson_error(file, line, say("No answer is marked as right, such as - [x] Yes."))
    prose.check(prose.parsed("\n".join(words for words, _ in question)), file, question[0][1])
    return Question(
        words=" ".join(words for words, _ in question),
        answers=tuple(_answer(*answer, file) for answer in answers),
        line=line,
    )


def _answer(right: bool, words: list[str], why: list[str], line: int, file: Path) -> Answer:
    answer_text, reason = " ".join(words).strip(), " ".join(why)
    if not answer_text:
        raise lesson_error(file, line, say("This answer has no words."))
    if not reason:
        message = say("This answer has no reason: write it on an indented line below it.")
        raise lesson_error(file, line, message)
    prose.check(prose.parsed(answer_text), file, line)
    prose.check(prose.parsed("\n".join(why)), file, line + 1)
    return Answer(answer_text, right, reason)
