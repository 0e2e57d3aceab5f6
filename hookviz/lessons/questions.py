"""A question of a lesson as its file has it: words, then a list of answers with their reasons."""

import re
from pathlib import Path

from hookviz.language.saying import say
from hookviz.lessons import prose
from hookviz.lessons.faults import fault
from hookviz.lessons.lesson import Answer, Question

FEWEST, MOST = 2, 6
_ANSWER = re.compile(r"[-*]\s+\[(?P<right>[ xX])\]\s*(?P<words>.*)")


def read_question(text: str, file: Path, line: int) -> Question:
    """The question in a block that begins at `line` of the file, its text on the line below.

    Raises:
        LessonError: it has no words, no right answer, too few or too many, or one without a reason.
    """
    asked: list[tuple[str, int]] = []
    answers: list[tuple[bool, list[str], list[str], int]] = []
    for at, written in enumerate(text.splitlines(), line + 1):
        found = _ANSWER.fullmatch(written.rstrip())
        if found:
            answers.append((found["right"] != " ", [found["words"]], [], at))
        elif not written.strip():
            continue
        elif not answers:
            asked.append((written.strip(), at))
        elif written[:1].isspace():
            answers[-1][2].append(written.strip())
        else:
            what = say(
                "After the first answer stand answers alone, such as - [x] Yes or - [ ] No, each "
                "with its reason on an indented line below it."
            )
            raise fault(file, at, what)
    if not asked:
        raise fault(file, line, say("The question has no words."))
    if not FEWEST <= len(answers) <= MOST:
        what = say(
            "The question has {count} answers; {minimum} to {maximum} work, each a line such as "
            "- [x] Yes or - [ ] No.",
            count=len(answers),
            minimum=FEWEST,
            maximum=MOST,
        )
        raise fault(file, line, what)
    if not any(right for right, *_ in answers):
        raise fault(file, line, say("No answer is marked as right, such as - [x] Yes."))
    prose.check(prose.parsed("\n".join(words for words, _ in asked)), file, asked[0][1])
    return Question(
        words=" ".join(words for words, _ in asked),
        answers=tuple(_answer(*answer, file) for answer in answers),
        line=line,
    )


def _answer(right: bool, words: list[str], why: list[str], line: int, file: Path) -> Answer:
    said, reason = " ".join(words).strip(), " ".join(why)
    if not said:
        raise fault(file, line, say("This answer has no words."))
    if not reason:
        what = say("This answer has no reason: write it on an indented line below it.")
        raise fault(file, line, what)
    prose.check(prose.parsed(said), file, line)
    prose.check(prose.parsed("\n".join(why)), file, line + 1)
    return Answer(said, right, reason)
