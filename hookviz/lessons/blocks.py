"""Parse the two notations inside a lesson's blocks: ``name: value`` lines and questions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from hookviz.language.saying import say
from hookviz.lessons import prose
from hookviz.lessons.lesson import Answer, Question
from hookviz.lessons.lesson_error import lesson_error

FEWEST_ANSWERS, MOST_ANSWERS = 2, 6
_LONGEST = 4000  # characters
_ANSWER = re.compile(r"[-*]\s+\[(?P<right>[ xX])\]\s*(?P<words>.*)")


@dataclass(frozen=True, slots=True)
class Value:
    """What stands behind a colon: the text as written, and its line in the file, from 1."""

    text: str
    line: int


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
    if not FEWEST_ANSWERS <= len(answers) <= MOST_ANSWERS:
        message = say(
            "The question has {count} answers; {minimum} to {maximum} work, each a line such as "
            "- [x] Yes or - [ ] No.",
            count=len(answers),
            minimum=FEWEST_ANSWERS,
            maximum=MOST_ANSWERS,
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
