"""The glossary's words and bold words, and how they are found and explained in a text."""

from pathlib import Path

from hookviz.explorer.glossary import WORDS, document, emphasised, explained, pieces, plainly, table
from hookviz.language.saying import say
from hookviz.language.speaking import speaking

DOCUMENT = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_document_has_the_same_words() -> None:
    assert DOCUMENT.read_text("utf-8") == document(), (
        "write it again: python -c 'from hookviz.explorer.glossary import document; "
        f'print(document(), end="")\' > {DOCUMENT.name}'
    )


def test_the_document_in_chinese_says_what_the_page_says() -> None:
    with speaking("zh_CN"):
        rows = table()
    assert "| 步长 (stride) | " in rows
    assert DOCUMENT.with_suffix(".zh.md").read_text("utf-8").endswith(f"\n\n{rows}")


def test_the_words_are_in_order_with_one_plain_sentence_each() -> None:
    assert list(WORDS) == sorted(WORDS, key=str.lower)
    for word, sentence in WORDS.items():
        assert sentence[0].isupper(), word
        assert sentence.endswith("."), word
        assert ". " not in sentence, word
        assert len(sentence) < 160, word


def test_nothing_of_a_text_is_lost_and_a_word_is_explained_once() -> None:
    text = "conv layer 1 of 26 · stride 2 · 3 → 64 channels of 55×55, all channels · sees 15 px"
    parts = pieces(text)
    assert "".join(part for part, _ in parts) == text
    words = [word for _, word in parts if word]
    assert words == ["conv layer", "stride", "channel", "receptive field"]
    assert pieces("no strides in a renorm") == [("no strides in a renorm", "")]
    assert pieces("") == []
    assert ("BatchNorm2d", "batch norm") in pieces("BatchNorm2d stem")
    for word in WORDS:
        assert (word, word) in pieces(f"here is {word}, and more")


def test_sentences_are_in_the_language_that_is_spoken() -> None:
    assert explained("bias 0.5")[0] == ("bias", WORDS["bias"])
    with speaking("zh_CN"):
        sentences = dict(explained("偏置 0.5"))
    assert not any(sentences[part].isascii() for part in sentences if sentences[part])
    assert any(sentences.values())


SENTENCE = "**Click a tile** for its map in A and in B. Hold **F** to flip between the two. "


def test_what_is_bold_is_told_and_nothing_is_lost() -> None:
    parts = emphasised(SENTENCE)
    assert [text for text, _, bold in parts if bold] == ["Click a tile", "F"]
    assert "".join(text for text, _, _ in parts) == plainly(SENTENCE) == SENTENCE.replace("*", "")
    assert plainly("a * b ** c") == "a * b ** c"
    assert ("channel", WORDS["channel"], False) in emphasised("**One** channel")


def test_translations_have_their_bold_words() -> None:
    with speaking("zh_CN"):
        said = say(SENTENCE)
        parts = emphasised(said)
    assert said != SENTENCE
    assert [text for text, _, bold in parts if bold][-1] == "F"
