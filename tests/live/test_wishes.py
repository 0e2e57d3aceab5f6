import pytest

from hookviz.errors import HookVizError
from hookviz.live.wishes import LONGEST, Wishes, read_wishes


@pytest.mark.parametrize(
    ("text", "wishes"),
    [
        ("{}", Wishes()),
        ('{"channel": 12, "hold": true, "cell": [3, 4]}', Wishes(12, hold=True, cell=(3, 4))),
        ('{"channel": null, "hold": false, "cell": null}', Wishes()),
        ('{"channel": 0, "what a later page adds": 1}', Wishes(0)),
    ],
)
def test_what_a_page_picks_is_read(text: str, wishes: Wishes) -> None:
    assert read_wishes(text) == wishes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"channel"',
        "{",
        '{"channel": -1}',
        '{"channel": true}',
        '{"channel": 1.5}',
        '{"channel": "1"}',
        '{"channel": 99999999999}',
        '{"hold": 1}',
        '{"hold": null}',
        '{"cell": [1]}',
        '{"cell": [1, -2]}',
        '{"cell": [1, 2, 3]}',
        '{"cell": {"row": 1}}',
        '{"cell": [NaN, 1]}',
        "[" * LONGEST,
        '{"channel": ' + "9" * (LONGEST - 20) + "}",
        "{" + " " * LONGEST + "}",
        "\0",
    ],
)
def test_whatever_else_is_said_is_refused_in_words(text: str) -> None:
    with pytest.raises(HookVizError, match='"channel": 12'):
        read_wishes(text)
