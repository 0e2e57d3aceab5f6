import pytest
import torch

import hookviz
from hookviz.models import devices


def test_the_cpu_is_always_there() -> None:
    assert devices.list_devices()[-1] == "cpu"
    assert devices.find_device("cpu") == devices.find_device(" CPU ") == torch.device("cpu")
    assert str(devices.find_device("auto")) == devices.list_devices()[0]
    model = hookviz.load_model("shapesnet", device="auto")
    assert str(next(model.network.parameters()).device) == devices.list_devices()[0]


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "cpu:1", "", "meta"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(device: str) -> None:
    with pytest.raises(hookviz.ModelError, match=rf"no device '{device}' here; there is .*cpu"):
        hookviz.load_model("shapesnet", device=device)


def test_half_precision_is_for_gpus() -> None:
    with pytest.raises(hookviz.ModelError, match="Half precision is for GPUs"):
        hookviz.load_model("shapesnet", device="cpu", half=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_computes_and_half_precision_is_a_choice() -> None:
    whole = hookviz.load_model("shapesnet", device="cuda")
    half = hookviz.load_model("shapesnet", device="cuda:0", half=True)
    assert next(whole.network.parameters()).dtype == torch.float32
    assert next(half.network.parameters()).dtype == torch.float16
    assert next(half.network.parameters()).device == torch.device("cuda:0")
    assert whole.digest == hookviz.load_model("shapesnet").digest != half.digest
