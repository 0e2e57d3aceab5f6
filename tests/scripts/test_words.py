"""The counts of words that decode nothing."""

import ast
import json

import pytest

from scripts.words import KEPT, names_defined, phrases_in, prose_of, risen, words_in_name

SOURCE = '''
"""Say what is drawn.

In
turn."""
# as it is
class LookedAt:
    def kept(self, given, *, where):
        found: int = given  # so many
        return found
'''


def test_listed_words_are_counted_where_they_stand_whole() -> None:
    tree = ast.parse(SOURCE)
    names = [word for name in names_defined(tree) for word in words_in_name(name)]
    assert sorted(names) == ["found", "given", "kept", "looked"]
    prose = [phrase for text in prose_of(tree, SOURCE) for phrase in phrases_in(text)]
    assert sorted(prose) == ["as it is", "in turn", "so many", "what is"]


@pytest.mark.parametrize(("count", "says"), [(3, []), (5, ["ui: 5 listed words, 4 before"])])
def test_a_count_may_fall_and_not_rise(count: int, says: list[str]) -> None:
    assert risen({"ui": count}, {"ui": 4}) == says
    assert risen({"new": 1}, json.loads(KEPT.read_text("utf-8"))) == [
        "new: 1 listed words, 0 before"
    ]
