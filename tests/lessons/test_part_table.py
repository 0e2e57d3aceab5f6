"""What docs/lessons.md says: its table of parts, and its example, read and shown."""

import re
from pathlib import Path

from hookviz.lessons.known_parts import parts
from hookviz.lessons.lesson import Live, Question
from hookviz.lessons.part import Fact, Scene
from hookviz.lessons.part_table import part_table
from hookviz.lessons.prose import as_html
from hookviz.lessons.reading import LARGEST, parse_lesson

DOCUMENT = Path(__file__).parents[2] / "docs" / "lessons.md"
BEGIN, END = "<!-- parts -->\n", "<!-- end of parts -->"


def test_the_table_of_parts_is_what_they_declare() -> None:
    """To write it anew: python -m tests.lessons.test_part_table."""
    text = DOCUMENT.read_text("utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == part_table()


def example() -> str:
    text = DOCUMENT.read_text("utf-8")
    found = re.search(r"^````markdown\n(.*?)^````$", text, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_example_is_a_lesson(scene: Scene) -> None:
    lesson = parse_lesson(example(), Path("01-edges.md"), "edges")
    assert [len(step.blocks) for step in lesson.steps] == [2, 4]
    assert isinstance(lesson.steps[1].blocks[1], Question)
    for step in lesson.steps:
        facts: dict[str, Fact] = {}
        for block in step.blocks:
            if isinstance(block, Live):
                facts |= parts()[block.part].facts(scene, block.options)
        for block in step.blocks:
            if not isinstance(block, Live):
                as_html(block.words, facts, lesson.file, block.line)


def test_the_limits_are_those_of_the_code() -> None:
    assert f"{LARGEST:,} bytes" in DOCUMENT.read_text("utf-8")


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}{part_table()}{END}{after}", "utf-8")
