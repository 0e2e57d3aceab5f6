"""Changes of the code that are made on purpose."""

import ast

from scripts.mutants import chosen, mutants_of
from scripts.servers import ROOT

SOURCE = '''
def area(width: int = 2, *, is_round: bool = True) -> float:
    """Return 3 times nothing."""
    if width == 0 and not is_round:
        raise ValueError(say("1 is needed", number=1))
    log(width)
    return width * 4
'''


def test_what_runs_is_changed_and_words_are_not() -> None:
    found = {(each.before, each.after) for each in mutants_of(SOURCE, "area.py")}
    assert found == {
        ("2", "3"),
        ("True", "False"),
        ("width == 0 and (not is_round)", "(not (width == 0 and (not is_round)))"),
        ("width == 0 and (not is_round)", "(width == 0 or not is_round)"),
        ("width == 0", "(width != 0)"),
        ("0", "1"),
        ("log(width)", "pass"),
        ("return width * 4", "return None"),
        ("width * 4", "(width // 4)"),
        ("4", "5"),
    }
    for each in mutants_of(SOURCE, "area.py"):
        ast.parse(each.applied(SOURCE))


def test_a_choice_is_the_same_again_and_each_is_code() -> None:
    mutants = chosen(50, 3, ["drawing", "types"])
    assert mutants == chosen(50, 3, ["drawing", "types"])
    assert {each.room for each in mutants} == {"drawing", "types"}
    for each in mutants:
        source = (ROOT / each.file).read_text("utf-8")
        assert ast.parse(each.applied(source)) is not ast.parse(source)
        assert each.applied(source) != source
