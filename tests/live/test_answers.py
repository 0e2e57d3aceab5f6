"""What goes out for a frame, taken apart again."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.framing import on_picture
from hookviz.drawing.grid import make_grid
from hookviz.drawing.tile_facts import tile_facts
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.images import reading
from hookviz.language.naming import class_label
from hookviz.language.speaking import speaking
from hookviz.live.answers import answer
from hookviz.live.frames import FrameTimer, draw
from hookviz.live.stream_options import StreamOptions, Subject
from hookviz.types import Model, ignore
from scripts.live_client import Answer, read_answer
from tests.live.subjects import STEP, frame, shapesnet, subject_of
from tests.networks import as_model, seeded
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
