"""One stream, whose frames are put by one thread and drawn in another."""

import json
import sys
import threading
import time

import pytest
from torch import Tensor, nn

import hookviz
from hookviz.hooking import replicas
from hookviz.live.stream import Stream, StreamClosed
from hookviz.live.stream_options import StreamOptions
from hookviz.serving import capacity
from hookviz.types import Model
from scripts.live_client import read_answer
from tests.live.subjects import frame, shapesnet, subject_of
from tests.live.turns import held_up
from tests.networks import all_hooks, as_model, seeded
from tests.pictures import encoded, picture


def nobody(_why: StreamClosed) -> None:
    pass


def stream_of(model: Model, **chosen: object) -> Stream:
    return Stream("somebody", subject_of(model, **chosen), nobody)


def number_of(answer: bytes | str | None) -> int:
    assert isinstance(answer, bytes)
    return int(read_answer(answer).facts["frame"])


def test_of_frames_that_wait_the_newest_is_drawn_and_the_others_are_not() -> None:
    stream = stream_of(shapesnet())
    assert [stream.put(number, frame(number)) for number in (1, 2, 3)] == [False, True, True]
    assert number_of(stream.next_answer()) == 3
    assert stream.put(4, frame(4)) is False
    assert number_of(stream.next_answer()) == 4


def test_a_frame_that_comes_while_a_turn_is_waited_for_is_the_one_that_is_drawn() -> None:
    stream, answers = stream_of(shapesnet()), []
    with held_up():
        stream.put(1, frame(1))
        waiting = threading.Thread(target=lambda: answers.append(stream.next_answer()))
        waiting.start()
        time.sleep(0.1)
        stream.put(2, frame(2))
    waiting.join(30)
    assert number_of(answers[0]) == 2


def test_what_is_wrong_with_a_frame_is_said_and_the_next_one_is_drawn() -> None:
    stream = stream_of(shapesnet())
    stream.put(1, b"junk")
    answer = stream.next_answer()
    assert isinstance(answer, str)
    assert "no image" in json.loads(answer)["refused"]
    stream.put(2, frame())
    assert number_of(stream.next_answer()) == 2


def test_another_subject_and_other_wishes_are_of_the_next_frame() -> None:
    model = shapesnet()
    stream = stream_of(model)
    stream.put(1, frame())
    first = stream.next_answer()
    stream.subject = subject_of(model, step="stage1.first.conv", sort="max")
    stream.options = StreamOptions(channel=2)
    stream.put(2, frame())
    second = stream.next_answer()
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
    before, after = read_answer(first), read_answer(second)
    assert (before.facts["grid"]["title"], len(before.blobs)) == ("stem.first.conv", 1)
    assert (after.facts["grid"]["title"], len(after.blobs)) == ("stage1.first.conv", 2)
    assert after.facts["grid"]["order"] != sorted(after.facts["grid"]["order"])


def test_a_scale_is_held_from_when_it_is_wished_until_it_is_not() -> None:
    stream = stream_of(shapesnet())
    bright, dim = frame(1), encoded(picture(1, 172, 128).point(lambda level: level // 9), "JPEG")

    def highest(data: bytes, *, hold: bool) -> float:
        stream.options = StreamOptions(hold=hold)
        stream.put(1, data)
        answer = stream.next_answer()
        assert isinstance(answer, bytes)
        return float(read_answer(answer).facts["grid"]["limits"]["high"][0])

    free = highest(bright, hold=False)
    other = highest(dim, hold=False)
    assert free != other
    assert highest(bright, hold=True) == free
    assert highest(dim, hold=True) == free
    assert highest(dim, hold=False) == other
    assert highest(dim, hold=True) == other


SLOW: list[bool] = []


class Slow(nn.Module):
    """A hundred layers, each of which takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(3, 3, 1) for _ in range(100)))

    def forward(self, images: Tensor) -> Tensor:
        for layer in self.layers:
            images = layer(images)
            if SLOW:
                time.sleep(0.05)
        return images.mean((2, 3))


@pytest.mark.parametrize("when", ["in its pass", "in the queue"])
def test_a_stream_that_is_over_stops_and_leaves_no_hook_and_no_turn(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = as_model(seeded(Slow))
    stream = stream_of(model, step="layers.0")
    hookviz.list_layers(model)
    monkeypatch.setattr(sys.modules[__name__], "SLOW", [True])
    answers: list[bytes | str | None] = []
    stream.put(1, encoded(picture(1, 16, 16)))
    drawing = threading.Thread(target=lambda: answers.append(stream.next_answer()))
    if when == "in its pass":
        drawing.start()
        deadline = time.monotonic() + 20
        while not capacity.queue().running and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.2)
        stream.end(None)
        drawing.join(2)  # the whole pass takes five
    else:
        with held_up():
            drawing.start()
            time.sleep(0.1)
            stream.end(None)
            drawing.join(2)
    assert not drawing.is_alive()
    assert answers == [None]
    assert all_hooks(model) == 0
    assert capacity.queue().running == 0


def test_an_error_of_ours_is_not_taken_for_the_frames() -> None:
    class BrokenError(Exception):
        pass

    def use_model() -> None:
        raise BrokenError

    stream = stream_of(shapesnet(), use_model=use_model)
    stream.put(1, frame())
    with pytest.raises(BrokenError):
        stream.next_answer()


def test_the_end_is_told_once() -> None:
    heard: list[StreamClosed] = []
    stream = Stream("somebody", subject_of(shapesnet()), heard.append)
    why = StreamClosed(4401, "over")
    for _ in range(3):
        stream.end(why)
    assert heard == [why]
    stream.put(1, frame())
    assert stream.next_answer() is None


def test_two_streams_at_once_see_their_own_frames() -> None:
    """Over one model, whose replicas they share; on a server it is tests/ui/serving."""
    model = shapesnet()
    wrong: list[int] = []

    def watch(owner: str, seeds: range) -> None:
        stream = Stream(owner, subject_of(model, size=32), nobody)
        pictures = [encoded(picture(seed, 32, 32)) for seed in seeds]
        right = [
            hookviz.capture(model, data, "stem.first.conv", size=32)["stem.first.conv"]
            .values.amax((1, 2))
            .tolist()
            for data in pictures
        ]
        for number in range(100):
            which = number % len(pictures)
            stream.put(number, pictures[which])
            answer = stream.next_answer()
            assert isinstance(answer, bytes)
            facts = read_answer(answer).facts
            maxima = [float(f"{value:.8g}") for value in right[which]]
            if facts["frame"] != number or facts["maxima"] != maxima:
                wrong.append(number)

    threads = [
        threading.Thread(target=watch, args=(owner, seeds))
        for owner, seeds in (("one", range(9)), ("two", range(20, 29)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    assert all_hooks(model) == 0
    assert len(replicas._idle[model.network]) <= 4
