from functools import partial

import pytest

from hookviz.language.saying import joined, localised, mark, say, say_count, sentences
from hookviz.language.speaking import speaking


def test_facts_stand_where_the_sentence_names_them() -> None:
    assert say("{b} and {a:.1f}", a=2, b="x") == "x and 2.0"
    assert mark("as {it} is") == "as {it} is"
    assert say("braces {stay} where no fact is given") == "braces {stay} where no fact is given"
    assert say("") == ""
    assert say("{text} of {self}", text="a", self="b") == "a of b"
    with pytest.raises(KeyError):
        say("{here} and {there}", here=1)


def test_counts_have_two_forms_in_english_and_chinese_facts_stand_close() -> None:
    counts = [say_count("{count:,} channel", "{count:,} channels", count) for count in (1, 1200)]
    assert counts == ["1 channel", "1,200 channels"]
    with speaking("zh_CN"):
        counts = [say_count("{count:,} channel", "{count:,} channels", each) for each in (1, 1200)]
    assert counts == ["1 个通道", "1,200 个通道"]
    with speaking("zh_CN"):
        said = partial(say, "The prediction changes from {old_label} to {new_label}.")
        assert said(old_label="星形", new_label="圆环") == "预测从星形变为圆环。"
        assert said(old_label="星形", new_label="toaster") == "预测从星形变为 toaster。"
        assert say("{label} {share}", label="我的 图", share="a b") == "我的 图 a b"


def test_numbers_names_and_sentences_are_written_as_the_language_does() -> None:
    assert localised("1,234.5") == "1,234.5"
    with speaking("de"):
        assert localised("1,234.5") == "1.234,5"
        assert say("{value:,.1f} MB", value=1234.5) == "1.234,5 MB"
        assert say("{name}", name="conv1.0") == "conv1.0", "a name is no number"
    assert joined(["conv1", "relu", "fc"]) == "conv1, relu, fc"
    assert sentences("One.", "", "Two.") == "One. Two."
    assert joined([]) == sentences("", "") == ""
    with speaking("zh_CN"):
        assert joined(["conv1", "relu", "fc"]) == "conv1、relu、fc"
        assert sentences("一。", "", "二。") == "一。二。"
