"""The glossary: its words, how they are found in a text, and the document of them."""

import re
from pathlib import Path

import pytest

from hookviz.ui.glossary import WORDS, document, marked, pieces, term

DOCUMENT = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_document_has_the_same_words() -> None:
    assert DOCUMENT.read_text("utf-8") == document(), (
        "write it again: python -c 'from hookviz.ui.glossary import document; "
        f'print(document(), end="")\' > {DOCUMENT.name}'
    )


def test_the_words_are_in_order_with_one_plain_sentence_each() -> None:
    assert list(WORDS) == sorted(WORDS, key=str.lower)
    for word, sentence in WORDS.items():
        assert sentence[0].isupper(), word
        assert sentence.endswith("."), word
        assert ". " not in sentence, word
        assert len(sentence) < 160, word


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_found_where_it_stands(word: str) -> None:
    assert (word, word) in pieces(f"here is {word}, and more")


def test_nothing_of_a_text_is_lost_and_a_word_is_explained_once() -> None:
    text = "conv layer 1 of 26 · stride 2 · 3 → 64 channels of 55×55, all channels · sees 15 px"
    parts = pieces(text)
    assert "".join(part for part, _ in parts) == text
    words = [word for _, word in parts if word]
    assert words == ["conv layer", "stride", "channel", "receptive field"]
    assert pieces("no strides in a renorm") == [("no strides in a renorm", "")]
    assert pieces("") == []
    assert ("BatchNorm2d", "batch norm") in pieces("BatchNorm2d stem")


def test_names_from_files_stay_text() -> None:
    html = marked("<b onclick=x>bias</b> *a*")
    assert re.findall(r"<(\w+)", html) == ["b", "span"]
    assert html.startswith("\\<b ")
    assert r"\*a\*" in html
    with pytest.raises(KeyError):
        term("no such word")
