import re
from html import unescape

import pytest

from hookviz.lessons.scripts import read_script, script_names
from hookviz.ui.lessons.script_editor import folded_html, script_html


@pytest.mark.parametrize("name", script_names())
def test_without_its_marks_it_is_the_script(name: str) -> None:
    script = read_script(name)
    names = [control.name for control in script.controls]
    html = script_html(script.text, names, "<the code>")
    code = html.partition("<code>")[2].partition("</code>")[0]
    assert unescape(re.sub(r"</?(?:span|b|mark)[^>]*>", "", code)).rstrip() == script.text.rstrip()
    assert 'aria-label="&lt;the code&gt;"' in html
    assert all(f"<mark>{each}</mark>" in code for each in names)


def test_what_looks_like_html_is_text_and_what_is_folded_is_below_a_line_that_opens_it() -> None:
    html = script_html('print("<b>&amp;")  # <script>\n', (), "code")
    assert "&lt;b&gt;&amp;amp;" in html
    assert "<script>" not in html
    html = folded_html("a = 1\nb = 2\n", "<Set-up>")
    assert html.startswith('<details class="hv-script-folded"><summary>&lt;Set-up&gt; <span>(2)<')
    assert "a = 1\nb = 2" in html
