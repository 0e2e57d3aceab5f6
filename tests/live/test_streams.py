"""Who may have a stream, and when it ends."""

from collections.abc import Callable

import pytest

from hookviz.live.stream import Stream, StreamClosed
from hookviz.live.streams import OFF, TOO_MANY, UNKNOWN, Streams
from tests.live.subjects import shapesnet, subject_of


def open_(
    streams: Streams,
    token: str,
    cookie: str = "cookie",
    on_closed: Callable[[StreamClosed], None] = lambda _why: None,
) -> Stream:
    return streams.open(token, lambda offered: offered == cookie, on_closed)


def refused(streams: Streams, token: str, cookie: str = "cookie") -> int:
    with pytest.raises(StreamClosed) as over:
        open_(streams, token, cookie)
    assert over.value.words
    return over.value.code


SUBJECT = subject_of(shapesnet())


def test_a_session_has_one_token_and_its_stream_follows_what_it_offers() -> None:
    streams = Streams(2)
    token = streams.offer("me", "cookie", SUBJECT)
    stream = open_(streams, token)
    other = subject_of(shapesnet(), sort="max")
    assert streams.offer("me", "cookie", other) == token
    assert stream.subject is other
    assert streams.offer("you", "cookie", SUBJECT) != token
    assert stream.subject is other
    assert len(token) >= 32


def test_nobody_elses_token_is_good_for_anything() -> None:
    streams = Streams(2)
    token = streams.offer("me", "cookie", SUBJECT)
    assert refused(streams, "") == UNKNOWN
    assert refused(streams, token[:-1]) == UNKNOWN
    assert refused(streams, token, "another's cookie") == UNKNOWN
    streams.withdraw("me")
    assert refused(streams, token) == UNKNOWN
    assert streams.offer("me", "cookie", SUBJECT) != token


def test_withdrawing_ends_the_stream_and_says_why() -> None:
    streams, heard = Streams(2), list[StreamClosed]()
    stream = open_(streams, streams.offer("me", "cookie", SUBJECT), on_closed=heard.append)
    streams.withdraw("me")
    streams.withdraw("me")
    streams.withdraw("nobody")
    assert stream.ended
    assert [why.code for why in heard] == [UNKNOWN]
    assert streams.live == 0


def test_a_session_has_one_stream_and_the_newest_connection_has_it() -> None:
    streams, heard = Streams(1), list[StreamClosed]()
    token = streams.offer("me", "cookie", SUBJECT)
    first = open_(streams, token, on_closed=heard.append)
    second = open_(streams, token)
    assert (first.ended, second.ended, streams.live) == (True, False, 1)
    assert [why.code for why in heard] == [TOO_MANY]
    streams.close(first)  # whose connection goes later
    assert streams.live == 1
    streams.close(second)
    assert (second.ended, streams.live) == (True, 0)
    open_(streams, token)


def test_streams_of_the_process_are_bounded_or_off() -> None:
    streams = Streams(3)
    tokens = [streams.offer(str(number), "cookie", SUBJECT) for number in range(5)]
    held = [open_(streams, token) for token in tokens[:3]]
    assert [refused(streams, token) for token in tokens[3:]] == [TOO_MANY] * 2
    streams.close(held[1])
    open_(streams, tokens[4])
    assert refused(streams, tokens[3]) == TOO_MANY
    streams = Streams(0)
    assert refused(streams, streams.offer("me", "cookie", SUBJECT)) == OFF
