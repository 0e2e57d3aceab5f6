"""A GPU computes what the CPU does; run where there is one."""

from pathlib import Path

import numpy as np
import pytest
import torch

import hookviz
from hookviz.models.loading import list_devices
from hookviz.types import Model
from tests.every_lens import SLUGS_OF_ANY

HERE = list_devices()
FAR = 1e-4  # of the largest value; TF32 is off


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.skipif(name not in HERE, reason=f"needs {name}"))
        for name in ("cuda:0", "mps")
    ]
)
def on_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    return hookviz.load_model("shapesnet", device=request.param)


SAMPLES = sorted(Path("assets/samples").glob("*.jpg"))[:6]


def test_every_layer_puts_out_what_it_does_on_the_cpu(on_device: Model) -> None:
    here = hookviz.capture(hookviz.load_model("shapesnet"), SAMPLES[0], "*")
    there = hookviz.capture(on_device, SAMPLES[0], "*")
    assert list(there) == list(here)
    for name, activation in here.items():
        expected = activation.raw
        largest = float(expected.abs().max())
        assert float((there[name].raw - expected).abs().max()) <= FAR * largest, name


def test_features_and_atlases_are_those_of_the_cpu(on_device: Model, tmp_path: Path) -> None:
    on_cpu = hookviz.load_model("shapesnet")
    here, there = (hookviz.extract_features(each, SAMPLES).vectors for each in (on_cpu, on_device))
    np.testing.assert_allclose(there, here, atol=FAR * np.abs(here).max())
    of_cpu, of_device = (
        hookviz.make_atlas(each, SAMPLES, tmp_path / f"{number}.atlas", top=3)
        for number, each in enumerate((on_cpu, on_device))
    )
    for layer in of_cpu.layers:
        for one, other in zip(
            of_cpu.top_activations(layer, 0), of_device.top_activations(layer, 0), strict=True
        ):
            assert (one.image.name, one.cell) == (other.image.name, other.cell)
            assert other.value == pytest.approx(one.value, rel=FAR)


@pytest.mark.parametrize("slug", SLUGS_OF_ANY)
def test_every_lens_answers(on_device: Model, slug: str) -> None:
    assert hookviz.run_lens(slug, on_device, SAMPLES[0]).panels
