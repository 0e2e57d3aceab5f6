from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hookviz.ui.state import plain


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_plain_text_has_no_markup_left(text: str) -> None:
    tokens = MarkdownIt().parseInline(plain(text).strip())[0].children or []
    assert {token.type for token in tokens} <= {"text", "text_special"}
    assert "".join(token.content for token in tokens) == text.strip()
