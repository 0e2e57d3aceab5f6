import asyncio
import math
import threading

import pytest

from hookviz.ui.serving import explorer_messages
from hookviz.ui.serving.explorer_messages import Message, Outbox, call_from_thread, message
from tests.loops import in_a_loop_of_its_own
from tests.ui.serving.explorer_server import Heard, heard


def test_messages_are_read_again_one_after_the_other() -> None:
    sent = [
        message("waits", {"position": 3, "says": "Nummer drei: ü, 三"}),
        message("answer", {"layer": "conv1"}, b"\x00\x01picture"),
        message("refused", {}),
    ]
    assert list(heard(b"".join(each.packed for each in sent))) == [
        Heard("waits", {"position": 3, "says": "Nummer drei: ü, 三"}, b""),
        Heard("answer", {"layer": "conv1"}, b"\x00\x01picture"),
        Heard("refused", {}, b""),
    ]
    assert [each.is_last for each in sent] == [False, True, True]
    for value in (math.nan, math.inf):  # which a browser could not read
        with pytest.raises(ValueError, match="JSON compliant"):
            message("answer", {"value": value})


def test_of_what_is_told_on_the_way_the_newest_is_sent_and_the_last_always() -> None:
    async def watch() -> list[Message]:
        outbox = Outbox()
        told = [message("progress", {"share": share}) for share in (0.1, 0.2, 0.3)]

        def tell() -> None:
            for each in told:
                outbox.put(each)

        thread = threading.Thread(target=tell)
        thread.start()
        thread.join()
        await asyncio.sleep(0.05)
        first = await outbox.take()
        outbox.put(told[0])
        outbox.put(message("answer", {}))
        await asyncio.sleep(0.05)
        return [first, await outbox.take()]

    ends = explorer_messages.server_ends()
    assert (ends.is_last, ends.facts["status"]) == (True, 503)
    first, last = in_a_loop_of_its_own(watch())
    assert (first.facts, last.kind) == ({"share": 0.3}, "answer")


def test_a_loop_that_has_ended_calls_nothing() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    call_from_thread(loop, lambda: pytest.fail("it was called"))
