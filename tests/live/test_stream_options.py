import pytest

from hookviz.errors import HookVizError
from hookviz.live.stream_options import LONGEST, StreamOptions, read_stream_options


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("{}", StreamOptions()),
        (
            '{"channel": 12, "hold": true, "cell": [3, 4]}',
            StreamOptions(12, hold=True, cell=(3, 4)),
        ),
        ('{"channel": null, "hold": false, "cell": null}', StreamOptions()),
        ('{"channel": 3, "values": true}', StreamOptions(3, values=True)),
        ('{"channel": 0, "what a later page adds": 1}', StreamOptions(0)),
    ],
)
def test_what_a_page_picks_is_read(text: str, options: StreamOptions) -> None:
    assert read_stream_options(text) == options


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
        '{"values": 1}',
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
        read_stream_options(text)
