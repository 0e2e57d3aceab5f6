import base64
import io

from PIL import Image

from hookviz import markup


def test_everything_is_escaped_numbers_end_flush_and_pictures_are_inside() -> None:
    bad = "<b>\"'&"
    safe = "&lt;b&gt;&quot;&#x27;&amp;"
    assert markup.element("p", bad) == f"<p>{safe}</p>"
    assert markup.table((bad,), [(bad,)]).count(safe) == 2
    assert f'alt="{safe}"' in markup.image(b"", bad)
    folded = markup.details(bad, "<hr/>", is_open=True)
    assert folded == f'<details open=""><summary>{safe}</summary><hr/></details>'
    html = markup.table(("a", "b"), [(1234567, 0.123456789), ("x", float("nan"))])
    assert '<td style="text-align: right">1234567</td>' in html
    assert ">0.123457</td>" in html
    assert ">nan</td>" in html
    assert "<td>x</td>" in html
    file = io.BytesIO()
    Image.new("RGB", (5, 3)).save(file, "PNG")
    html = markup.image(file.getvalue(), "five by three")
    data = html.partition("base64,")[2].partition('"')[0]
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (5, 3)
