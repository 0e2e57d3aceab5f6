"""A script as a part of a lesson: its facts are its own, and a name that is none is refused."""

from hookviz.lessons.parts.hook_code import PART
from tests.lessons.parts.scenes import star, with_defaults


def test_facts_are_what_the_names_of_the_script_hold() -> None:
    facts = PART.facts(star(), with_defaults(PART, script="see"))
    assert (facts["channels"], facts["rows"], facts["columns"]) == (8, 30, 30)
    assert facts["channel"] == 0


def test_a_script_that_is_none_is_refused() -> None:
    option = PART.options[0]
    assert "in_place" in option.check("inplace")
    assert option.check("in_place") == ""
