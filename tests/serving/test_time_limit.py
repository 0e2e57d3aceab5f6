import io
import time

import pytest
import torch

import hookviz
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.images.samples import samples
from hookviz.models.loading import load_checkpoint
from hookviz.serving.time_limit import TimeLimit, TooLongError


def test_progress_passes_on_until_the_time_is_over() -> None:
    shares: list[float] = []
    now = time.monotonic()
    TimeLimit("A run", 9, now + 9).within(shares.append)(0.25)
    assert shares == [0.25]
    with pytest.raises(TooLongError, match="A run took longer than the 9 seconds"):
        TimeLimit("A run", 9, now - 1).within(shares.append)(0.5)
    assert shares == [0.25]


@pytest.mark.usefixtures("runs_of_a_second")
def test_the_settings_say_how_long_a_run_may_take() -> None:
    limit = TimeLimit.from_now("A run")
    assert limit.seconds == 1
    assert 0 < limit.deadline - time.monotonic() <= 1


def test_loading_a_model_ends_when_the_time_is_over() -> None:
    over = TimeLimit("Loading it", 9, time.monotonic() - 1)
    with pytest.raises(TooLongError, match="Loading it took longer"), over.over_torch():
        hookviz.load_model("shapesnet")
    with TimeLimit.from_now("Loading it").over_torch():
        assert hookviz.load_model("shapesnet").title == "ShapesNet"


def test_a_checkpoint_is_not_called_damaged_when_the_time_is_over() -> None:
    file = io.BytesIO()
    torch.save(hookviz.load_model("shapesnet").network.state_dict(), file)
    over = TimeLimit("Loading it", 9, time.monotonic() - 1)
    with pytest.raises(TooLongError, match="Loading it took longer"), over.over_torch():
        load_checkpoint("shapesnet", file.getvalue(), "mine.pth")


def test_recording_a_layer_s_input_ends_and_leaves_no_hook() -> None:
    model = hookviz.load_model("shapesnet")
    photograph = samples()[0].path
    first = record_layer_call(model, photograph, "stage1.second.conv")
    over = TimeLimit("Recording", 9, time.monotonic() - 1)
    with pytest.raises(TooLongError, match="Recording took longer"), over.over_torch():
        record_layer_call(model, photograph, "stage1.second.conv")
    with TimeLimit.from_now("Recording").over_torch():
        again = record_layer_call(model, photograph, "stage1.second.conv")
    assert torch.equal(again.output, first.output)
