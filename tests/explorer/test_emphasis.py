"""Bold words of a sentence, in each language, with the glossary's words explained."""

from hookviz.explorer.emphasis import emphasised, plainly
from hookviz.explorer.glossary import WORDS
from hookviz.language.saying import say
from hookviz.language.speaking import speaking

SENTENCE = "**Click a tile** for its map in A and in B. Hold **F** to flip between the two. "


def test_what_is_bold_is_told_and_nothing_is_lost() -> None:
    parts = emphasised(SENTENCE)
    assert [text for text, _, bold in parts if bold] == ["Click a tile", "F"]
    assert "".join(text for text, _, _ in parts) == plainly(SENTENCE) == SENTENCE.replace("*", "")


def test_a_word_of_the_glossary_is_explained() -> None:
    assert ("channel", WORDS["channel"], False) in emphasised("**One** channel")


def test_translations_have_their_bold_words() -> None:
    with speaking("zh_CN"):
        said = say(SENTENCE)
        parts = emphasised(said)
    assert said != SENTENCE
    assert [text for text, _, bold in parts if bold][-1] == "F"


def test_single_stars_stand_as_they_are() -> None:
    assert plainly("a * b ** c") == "a * b ** c"
