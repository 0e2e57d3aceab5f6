"""Who may have a stream, and when it ends."""

import json
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.grid import make_grid, tile_facts
from hookviz.drawing.overlay import on_picture
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.hooking import network_state
from hookviz.images import reading
from hookviz.language.naming import class_label
from hookviz.language.speaking import speaking
from hookviz.live.frames import FrameTimer, StreamOptions, Subject, draw
from hookviz.live.streams import OFF, TOO_MANY, UNKNOWN, Stream, StreamClosed, Streams, answer
from hookviz.serving import capacity
from hookviz.types import Model, ignore
from scripts.live_client import Answer, read_answer
from tests.live.subjects import STEP, frame, shapesnet, subject_of
from tests.live.turns import held_up
from tests.networks import all_hooks, as_model, seeded
from tests.pictures import encoded, picture


def answered(
    data: bytes,
    model: Model,
    subject: Subject,
    options: StreamOptions = StreamOptions(),  # noqa: B008
) -> Answer:
    timer = FrameTimer({"wait": 1.0})
    drawn = draw(data, model, subject, held=None, timer=timer, check=ignore)
    return read_answer(answer(7, drawn, model, options, timer))


def test_the_grid_comes_with_all_that_the_mosaic_is_painted_from() -> None:
    model, data = shapesnet(), frame(1)
    reply = answered(data, model, subject_of(model))
    capture = hookviz.capture(model, data, STEP)
    grid = make_grid(capture[STEP], scale="balanced", colormap="RdBu_r")
    facts = tile_facts(grid, "", grid.sprite)
    assert {name: reply.facts["grid"][name] for name in facts if name != "alt"} == {
        name: fact for name, fact in facts.items() if name != "alt"
    }
    assert STEP in reply.facts["grid"]["alt"]
    assert (reply.facts["frame"], reply.facts["picked"]) == (7, None)
    assert reply.blobs == (grid.sprite,)
    assert [tuple(each) for each in reply.facts["scores"]] == list(capture.predictions(5))
    assert np.allclose(reply.facts["maxima"], capture[STEP].values.amax((1, 2)).numpy(), rtol=1e-6)
    assert list(reply.facts["ms"]) == ["wait", "decode", "shrink", "pass", "grid", "encode"]


def test_classes_have_their_names_in_the_language_that_is_spoken() -> None:
    model, data = shapesnet(), frame(1)
    with speaking("zh_CN"):
        reply = answered(data, model, subject_of(model)).facts["scores"]
        top = hookviz.capture(model, data, STEP).likeliest(5)
        names = [class_label(index, model.categories) for index, _ in top]
    assert [name for name, _ in reply] == names
    assert not any(name.isascii() for name in names)


@pytest.mark.parametrize("top", [None, 3])
def test_the_picked_channel_has_its_map_its_strongest_cell_and_what_that_sees(
    top: int | None,
) -> None:
    model, data, channel = shapesnet(), frame(4), 5
    subject = subject_of(model, top=top, sort="max" if top else "index")
    reply = answered(data, model, subject, StreamOptions(channel, cell=(3, 4)))
    capture = hookviz.capture(model, data, STEP)
    values = capture[STEP].values[channel].numpy()
    row, column = np.unravel_index(values.argmax(), values.shape)
    image, model_input = reading.decode(data), capture.model_input
    box = receptive_fields(model, (3, 128, 128))[STEP].box(int(row), int(column))
    assert model_input.crop is not None
    assert reply.facts["picked"] == {
        "channel": channel,
        "max": float(f"{values.max():.8g}"),
        "min": float(f"{values.min():.8g}"),
        "mean": pytest.approx(float(values.mean(dtype=np.float64)), rel=1e-5),
        "cell": [row, column],
        "frame_box": list(on_picture(box, model_input.crop, image, (128, 172))),
        "at": [3, 4],
        "value": float(f"{values[3, 4]:.8g}"),
    }
    whole = make_grid(capture[STEP], scale="balanced", colormap="RdBu_r")
    assert reply.blobs[1] == whole.channel_png(channel, 1)


def test_a_channel_and_a_cell_that_the_layer_has_not_are_passed_over() -> None:
    model = shapesnet()
    reply = answered(frame(), model, subject_of(model), StreamOptions(32))
    assert (reply.facts["picked"], len(reply.blobs)) == (None, 1)
    reply = answered(frame(), model, subject_of(model), StreamOptions(31, cell=(64, 0)))
    assert (reply.facts["picked"]["at"], reply.facts["picked"]["value"]) == (None, None)


def test_numbers_that_json_has_not_are_null_and_no_scores_are_none() -> None:
    module = seeded(lambda: nn.Sequential(nn.Conv2d(3, 3, 1)))
    with torch.no_grad():
        bias = module[0].bias
        assert isinstance(bias, Tensor)
        bias.copy_(torch.tensor([float("nan"), float("inf"), 1.0]))
    model = as_model(module)
    reply = answered(
        encoded(picture(1, 16, 16)), model, subject_of(model, step="0"), StreamOptions(0)
    )
    assert reply.facts["scores"] == []
    assert reply.facts["maxima"][:2] == [None, None]
    assert reply.facts["picked"]["max"] is None
    assert reply.facts["picked"]["cell"] == [0, 0]


def test_where_values_are_wanted_the_channel_s_map_comes_as_numbers_and_no_grid() -> None:
    model, data, channel = shapesnet(), frame(4), 5
    reply = answered(data, model, subject_of(model), StreamOptions(channel, values=True))
    values = hookviz.capture(model, data, STEP)[STEP].values[channel].numpy()
    facts = reply.facts["values"]
    assert (facts["rows"], facts["columns"]) == values.shape
    assert (facts["low"], facts["high"]) == (values.min(), values.max())
    (sent,) = reply.blobs
    levels = np.frombuffer(sent, np.uint8).reshape(values.shape)
    read = facts["low"] + levels / 255 * (facts["high"] - facts["low"])
    assert np.abs(read - values).max() <= (values.max() - values.min()) / 510 + 1e-6
    assert reply.facts["grid"] is None
    assert reply.facts["picked"]["max"] == float(f"{values.max():.8g}")


def test_values_of_no_channel_are_the_grid_and_what_is_not_finite_is_the_lowest() -> None:
    model = shapesnet()
    reply = answered(frame(), model, subject_of(model), StreamOptions(values=True))
    assert reply.facts["grid"]["order"]
    assert reply.facts["values"] is None
    module = seeded(lambda: nn.Sequential(nn.Conv2d(3, 1, 1)))
    with torch.no_grad():
        bias = module[0].bias
        assert isinstance(bias, Tensor)
        bias.fill_(float("inf"))
    infinite = as_model(module)
    wanted = StreamOptions(0, values=True)
    subject = subject_of(infinite, step="0")
    reply = answered(encoded(picture(1, 16, 16)), infinite, subject, wanted)
    assert (reply.facts["values"]["low"], reply.facts["values"]["high"]) == (0.0, 0.0)
    assert set(reply.blobs[0]) == {0}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_network_whose_weights_broke_is_still_looked_at(value: float) -> None:
    linear = nn.Linear(4, 5)
    nn.init.constant_(linear.weight, value)
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = as_model(nn.Sequential(nn.Conv2d(3, 4, 3), *pool, linear))
    subject = subject_of(model, step="0")
    reply = answered(frame(1), model, subject, StreamOptions(1, cell=(0, 0)))
    assert reply.facts["scores"] == []
    assert len(reply.blobs) == 2


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


def test_the_end_is_told_once_and_an_error_of_ours_is_not_the_frames() -> None:
    heard: list[StreamClosed] = []
    stream = Stream("somebody", subject_of(shapesnet()), heard.append)
    why = StreamClosed(4401, "over")
    for _ in range(3):
        stream.end(why)
    assert heard == [why]
    stream.put(1, frame())
    assert stream.next_answer() is None

    class BrokenError(Exception):
        pass

    def use_model() -> None:
        raise BrokenError

    stream = stream_of(shapesnet(), use_model=use_model)
    stream.put(1, frame())
    with pytest.raises(BrokenError):
        stream.next_answer()


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
    assert len(network_state._idle[model.network]) <= 4


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
