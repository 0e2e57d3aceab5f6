"""A frame's way, held against the library's own functions, to the last bit."""

import random
import time

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.grid import ScaleLock, make_grid
from hookviz.errors import HookVizError, ImageError
from hookviz.hooking.channels_last import ROUNDING
from hookviz.live.frames import (
    LONGEST,
    MOST_PIXELS,
    DrawnFrame,
    FrameTimer,
    StreamOptions,
    Subject,
    draw,
    read_stream_options,
)
from hookviz.types import ActivationKey, Model, Progress, ignore
from tests.live.subjects import frame, shapesnet, subject_of
from tests.networks import Tiny, all_hooks, as_model, as_shared, seeded
from tests.pictures import encoded, picture
from tests.wide_networks import Wide


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


def drawn(
    data: bytes,
    model: Model,
    subject: Subject,
    held: ScaleLock | None = None,
    check: Progress = ignore,
) -> DrawnFrame:
    return draw(data, model, subject, held=held, timer=FrameTimer(), check=check)


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [
        ("JPEG", {}),
        (
            "JPEG",
            {"step": "stem.first", "signed_colormap": "gray_r", "colormap": "gray_r"},
        ),
        ("WEBP", {"step": "stage2.first.conv", "sort": "variance", "scale": "percentile"}),
        ("PNG", {"whole": True, "size": 96, "scale": "channel", "top": 7}),
    ],
)
def test_a_frame_is_drawn_as_capture_and_make_grid_draw_it(
    kind: str, chosen: dict[str, object]
) -> None:
    model, data = shapesnet(), encoded(picture(3, 172, 128), kind)
    subject = subject_of(model, **chosen)
    result = drawn(data, model, subject)
    capture = hookviz.capture(
        model, data, ActivationKey.read(subject.step).layer, size=subject.size, whole=subject.whole
    )
    recorded = capture[subject.step]
    signed, look = bool((recorded.values < 0).any()), subject.look
    grid = make_grid(
        recorded,
        sort=look.sort,
        top=look.top,
        scale=look.scale,
        colormap=look.signed_colormap if signed else look.colormap,
    )
    assert result.grid.sprite == grid.sprite
    assert torch.equal(result.maps, recorded.values)
    assert result.grid.legend == grid.legend
    assert result.capture.predictions(5) == capture.predictions(5)
    # and where a pass records all layers, as the explorer's does
    layers = [layer.name for layer in hookviz.list_layers(model, kind="maps")]
    capture = hookviz.capture(model, data, layers, size=subject.size, whole=subject.whole)
    assert torch.equal(result.maps, capture[subject.step].values)


def test_a_step_is_a_call_of_a_layer_and_of_a_volume_its_slice() -> None:
    model = as_model(seeded(Tiny))
    data = encoded(picture(1, 16, 16))
    for step in ("relu", "relu#1", "conv2"):
        result = drawn(data, model, subject_of(model, step=step))
        capture = hookviz.capture(model, data, ActivationKey.read(step).layer)
        assert torch.equal(result.maps, capture[step].values)
    model, data = as_model(seeded(Volumes)), encoded(picture(1, 16, 16))
    result = drawn(data, model, subject_of(model, step="conv"))
    values = hookviz.capture(model, data, "conv")["conv"].values
    assert values.shape[1] == 3
    assert torch.equal(result.maps, values[:, 1])


def test_a_large_networks_frame_is_what_plain_hooks_see_to_rounding_and_captures_stay_exact() -> (
    None
):
    model, network = as_shared(seeded(Wide)), seeded(Wide).eval()
    data, seen = encoded(picture(4, 16, 16)), []
    network.conv3.register_forward_hook(lambda _module, _in, output: seen.append(output.detach()))
    for _turn in range(2):
        result = drawn(data, model, subject_of(model, step="conv3"))
        assert result.passed is not model
        scores = network(hookviz.prepare_input(model, data).tensor)[0].detach()
        expected = seen.pop()[0]
        assert result.maps.is_contiguous()
        assert result.capture["conv3"].values.is_contiguous()
        far = (result.maps - expected).abs().max()
        assert far <= ROUNDING * expected.abs().max()
        assert result.capture.logits is not None
        assert (result.capture.logits - scores).abs().max() <= ROUNDING * scores.abs().max()
        frozen = hookviz.capture(model, data, "conv3")
        assert torch.equal(frozen["conv3"].values, expected)
    assert result.capture.made_by is not None
    assert result.capture.made_by() is model
    assert not result.capture.model_input.tensor.is_contiguous(memory_format=torch.channels_last)
    small = shapesnet()
    assert drawn(data, small, subject_of(small)).passed is small


class Volumes(nn.Module):
    """Makes a volume of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(1, 2, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.conv(images[:, None])
        return result.mean((2, 3, 4))


def test_a_scale_that_is_held_stays_and_another_layers_is_its_own() -> None:
    model = shapesnet()
    subject, held = subject_of(model), ScaleLock()
    first = drawn(frame(1), model, subject, held)
    flat = encoded(picture(2, 172, 128).point(lambda level: level // 8), "JPEG")
    free, same = drawn(flat, model, subject), drawn(flat, model, subject, held)
    assert np.array_equal(same.grid.limits.high, first.grid.limits.high)
    assert not np.array_equal(free.grid.limits.high, first.grid.limits.high)
    sorted_anew = drawn(flat, model, subject_of(model, sort="max", top=3), held)
    assert np.array_equal(sorted_anew.grid.limits.high, first.grid.limits.high)
    other = drawn(flat, model, subject_of(model, step="stage1.first.conv"), held)
    assert np.array_equal(
        other.grid.limits.high,
        drawn(flat, model, subject_of(model, step="stage1.first.conv")).grid.limits.high,
    )


def bomb(kind: str) -> bytes:
    side = int(MOST_PIXELS**0.5) + 100
    return encoded(picture(0, 8, 8).resize((side, side)), kind)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"junk", "no image"),
        (encoded(picture(), "GIF"), "another format"),
        (encoded(picture(), "TIFF"), "another format"),
        (frame()[:-200], "truncated"),
        (frame() + b"\xff\xda" * 31, "scans is too much work"),
        (bomb("PNG"), "up to 4 million"),
        (bomb("JPEG"), "up to 4 million"),
        (bomb("WEBP"), "up to 4 million"),
    ],
)
def test_a_frame_that_is_none_or_too_much_is_refused_in_words_and_at_once(
    data: bytes, why: str
) -> None:
    model = shapesnet()
    started = time.perf_counter()
    with pytest.raises(ImageError, match=why):
        drawn(data, model, subject_of(model))
    assert time.perf_counter() - started < 1
    assert all_hooks(model) == 0


def test_mutated_frames_are_drawn_or_refused_and_leave_no_hook() -> None:
    model = as_model(seeded(Tiny))
    subject, rng = subject_of(model, step="conv1"), random.Random(5)
    whole = [encoded(picture(2, 24, 16), kind) for kind in ("JPEG", "WEBP", "PNG")]
    outcomes = {"drawn": 0, "refused": 0}
    for _ in range(300):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            drawn(bytes(data[: rng.randint(1, 2 * len(data))]), model, subject)
            outcomes["drawn"] += 1
        except HookVizError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20
    assert all_hooks(model) == 0


class Gone(BaseException):
    """How a stream's end comes out of a pass."""


@pytest.mark.parametrize("error", [Gone, ValueError])
def test_a_pass_that_is_ended_from_outside_leaves_no_hook(error: type[BaseException]) -> None:
    model = shapesnet()
    shares: list[float] = []

    def stop(share: float) -> None:
        shares.append(share)
        if len(shares) == 5:
            raise error

    with pytest.raises(error):
        drawn(frame(), model, subject_of(model), check=stop)
    assert all_hooks(model) == 0


def test_what_the_network_does_not_take_is_said() -> None:
    model = shapesnet()
    with pytest.raises(HookVizError, match=r"stem\.first\.conv"):
        drawn(frame(), model, subject_of(model, step="stem.first.cnov"))
    with pytest.raises(HookVizError, match="no maps"):
        drawn(frame(), model, subject_of(model, step="head"))
    assert all_hooks(model) == 0
