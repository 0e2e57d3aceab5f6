import logging
from collections.abc import Iterator

import pytest
import torch

from hookviz.serving import device
from hookviz.serving.device import gpu_bytes, serving_device
from hookviz.settings import Settings, read_settings


@pytest.fixture(autouse=True)
def chosen_anew() -> Iterator[None]:
    serving_device.cache_clear()
    yield
    serving_device.cache_clear()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_missing_is_named_and_the_cpu_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(device, "settings", lambda: Settings(device="cuda"))
    with caplog.at_level(logging.WARNING, "hookviz"):
        assert serving_device() == torch.device("cpu")
        assert serving_device() == torch.device("cpu")  # said once
    (line,) = caplog.messages
    assert "no device 'cuda' here" in line
    assert line.endswith("The app computes on the CPU.")
    assert gpu_bytes() == (0, 0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_networks_of_the_app_are_on_the_gpu_within_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "settings", lambda: Settings(device="cuda", gpu_mb=512))
    assert serving_device().type == "cuda"
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 30, device=serving_device())
    used, limit = gpu_bytes()
    assert used <= limit == 512 << 20
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_the_settings_are_read() -> None:
    chosen = read_settings({"HOOKVIZ_DEVICE": " auto ", "HOOKVIZ_GPU_MB": "2048"})
    assert (chosen.device, chosen.gpu_mb) == ("auto", 2048)
    assert (Settings().device, Settings().gpu_mb) == ("cpu", 0)
