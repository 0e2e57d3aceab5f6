"""What parts declare is checked and in docs/lessons.md, and what they compute is kept."""

import re
from dataclasses import replace
from pathlib import Path

from hookviz.capturing.cache import Budget
from hookviz.lessons.lesson import LARGEST, Live, Question, parse_lesson
from hookviz.lessons.part import Fact, LessonScene, Part, choice, whole_number
from hookviz.lessons.prose import as_html
from hookviz.ui.lessons.catalog import part_module, parts
from tests.ui.lessons.parts.scenes import cat, star

DOCUMENT = Path(__file__).parents[2] / "docs" / "lessons.md"
BEGIN, END = "<!-- parts -->\n", "<!-- end of parts -->"


def test_every_part_declares_itself_for_whoever_writes_a_lesson() -> None:
    for name, part in parts().items():
        assert name == part.name
        assert part.sentence.endswith(".")
        for option in part.options:
            assert option.help.endswith(".")
            if option.default:
                assert option.check(option.default) == "", (name, option.name)
    for name in parts():
        assert callable(part_module(name).show)


def test_an_option_takes_whole_numbers_or_one_of_some_names() -> None:
    check = whole_number(-2, 12)
    assert [check(value) for value in ("-2", "0", "12")] == [""] * 3
    for wrong in ("13", "-3", "1.5", "", "x", "²", "1e3", " 1", "9" * 400):
        assert check(wrong) == "A whole number from -2 to 12 works here."
    check = choice(("vertical", "blur"))
    assert check("blur") == ""
    assert check("vertica") == "Did you mean 'vertical'?"
    assert check("zzz") == "There are: vertical, blur."


def test_what_a_part_computed_is_kept_while_there_is_room() -> None:
    cache = Budget(1000).cache(1000)
    scene, other = (replace(each, cache=cache) for each in (star(), cat()))
    computed: list[int] = []

    def compute() -> int:
        computed.append(1)
        return len(computed)

    assert [scene.cached(("a",), compute, 10) for _ in range(3)] == [1, 1, 1]
    assert scene.cached(("b",), compute, 10) == 2
    assert other.cached(("a",), compute, 10) == 3
    assert scene.cached(("large",), compute, 2000) == 4
    assert scene.cached(("large",), compute, 2000) == 5


def test_without_a_cache_it_is_computed_each_time() -> None:
    computed: list[int] = []
    for _ in range(2):
        star().cached(("a",), lambda: computed.append(1), 10)
    assert len(computed) == 2


def test_the_table_of_parts_and_the_limits_are_those_of_the_code() -> None:
    """To write it anew: python -m tests.lessons.test_part."""
    text = DOCUMENT.read_text("utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == part_table()
    assert f"{LARGEST:,} bytes" in DOCUMENT.read_text("utf-8")


def example() -> str:
    text = DOCUMENT.read_text("utf-8")
    found = re.search(r"^````markdown\n(.*?)^````$", text, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_example_is_a_lesson(scene: LessonScene) -> None:
    lesson = parse_lesson(example(), Path("01-edges.md"), "edges", parts())
    assert [len(step.blocks) for step in lesson.steps] == [2, 4]
    assert isinstance(lesson.steps[1].blocks[1], Question)
    for step in lesson.steps:
        facts: dict[str, Fact] = {}
        for block in step.blocks:
            if isinstance(block, Live):
                facts |= block.part.facts(scene, block.options)
        for block in step.blocks:
            if not isinstance(block, Live):
                as_html(block.words, facts, lesson.file, block.line)


def part_table() -> str:
    """Return each part with what it shows, and its options with their defaults, as Markdown."""
    rows = "\n".join(
        f"| `{name}` | {part.sentence} | {_options(part)} |" for name, part in parts().items()
    )
    return f"| part | what one sees and can do | options |\n|---|---|---|\n{rows}\n"


def _options(part: Part) -> str:
    options = []
    for option in part.options:
        if option.default is None:
            default = "must be set"
        elif option.default:
            default = f"`{option.default}` without it"
        else:
            default = "nothing without it"
        options.append(f"`{option.name}` ({default}): {option.help}")
    return "<br>".join(options)


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}{part_table()}{END}{after}", "utf-8")
