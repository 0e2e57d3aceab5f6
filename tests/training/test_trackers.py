"""Tests for what is written to trackers: by the real clients, offline, and read back."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import hookviz
from hookviz.errors import SettingError
from hookviz.training.training_log import TrainingLog


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def train(network: nn.Module, steps: int = 2) -> list[torch.Tensor]:
    """Return the gradients of the first weights, step by step."""
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    gradients = []
    for step in range(steps):
        images = torch.full((2, 3, 8, 8), 0.5 + step)
        optimiser.zero_grad()
        network(images).square().sum().backward()
        weight = network.get_parameter("0.weight")
        assert weight.grad is not None
        gradients.append(weight.grad.clone())
        optimiser.step()
    return gradients


@pytest.fixture
def board(tmp_path: Path) -> tuple[TrainingLog, list[torch.Tensor], EventAccumulator]:
    network = small()
    with (
        SummaryWriter(str(tmp_path)) as writer,
        hookviz.record(network, to=writer, pictures="0") as log,
    ):
        gradients = train(network)
    events = EventAccumulator(str(tmp_path), size_guidance={"images": 0, "histograms": 0})
    events.Reload()
    return log, gradients, events


def test_tensorboard_has_every_number_histograms_and_grids(
    board: tuple[TrainingLog, list[torch.Tensor], EventAccumulator],
) -> None:
    log, gradients, events = board
    for row in log.rows:
        for name in ("gradient_norm", "weight_norm", "update_ratio", "mean", "deviation", "dead"):
            value = getattr(row, name)
            tag = f"{row.layer}/{name}"
            if value is not None:
                written = {event.step: event.value for event in events.Scalars(tag)}
                assert written[row.step] == pytest.approx(value, rel=1e-6), tag
    norms = [event.value for event in events.Scalars("0/gradient_norm")]
    assert norms[0] > float(gradients[0].norm()) > 0  # the bias's gradient counts too
    _, gradients, events = board
    for step, event in enumerate(events.Histograms("0/weight/gradient")):
        seen = event.histogram_value
        assert (event.step, seen.num) == (step, gradients[step].numel())
        assert seen.min == pytest.approx(float(gradients[step].min()), rel=1e-6)
        assert seen.max == pytest.approx(float(gradients[step].max()), rel=1e-6)
    first = events.Histograms("0/weight")[0].histogram_value
    begun = small().get_parameter("0.weight").detach()
    assert first.sum == pytest.approx(float(begun.sum()), rel=1e-5)
    picture = Image.open(io.BytesIO(events.Images("0/maps")[0].encoded_image_string))
    network = small()
    with torch.no_grad():
        maps = network.get_submodule("0")(torch.full((1, 3, 8, 8), 0.5))[0]
    grid = Image.open(io.BytesIO(hookviz.make_grid(maps, scale="layer", width=800).png()))
    assert np.array_equal(np.asarray(picture), np.asarray(grid.convert("RGB")))


def test_weights_and_biases_gets_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb: Any = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="test")
    network = small()
    try:
        with hookviz.record(network, to=run, pictures="0") as log:
            train(network)
        summary = dict(run.summary)
    finally:
        run.finish()
    last = [row for row in log.rows if row.step == 1]
    for row in last:
        if row.gradient_norm is not None:
            assert summary[f"{row.layer}/gradient_norm"] == pytest.approx(row.gradient_norm)
    assert summary["hookviz/step"] == 1
    assert list(tmp_path.rglob("*.wandb"))  # what `wandb sync` sends
    assert list(tmp_path.rglob("media/images/0/maps*.png"))


@pytest.mark.filterwarnings("ignore")  # Lightning's own, of torch and of few workers
def test_lightning_records_by_a_callback_and_writes_to_its_logger(tmp_path: Path) -> None:
    lightning: Any = pytest.importorskip("lightning.pytorch")
    loggers: Any = pytest.importorskip("lightning.pytorch.loggers")

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = small()

        def training_step(self, batch: list[torch.Tensor], _number: int) -> torch.Tensor:
            return self.model(batch[0]).square().sum()  # type: ignore[no-any-return]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    images = torch.utils.data.TensorDataset(torch.rand(6, 3, 8, 8))
    callback = hookviz.lightning_callback("model", every=2)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=loggers.TensorBoardLogger(str(tmp_path)),
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        log_every_n_steps=1,
    )
    module = Module()
    trainer.fit(module, torch.utils.data.DataLoader(images, batch_size=1))
    assert sorted({row.step for row in callback.log.rows}) == [0, 2, 4]
    assert not any(layer._forward_hooks for layer in module.modules())
    events = EventAccumulator(trainer.logger.log_dir)
    events.Reload()
    assert [event.step for event in events.Scalars("0/gradient_norm")] == [0, 2, 4]


def test_what_is_no_tracker_is_refused() -> None:
    with (
        pytest.raises(SettingError, match="neither a SummaryWriter"),
        hookviz.record(small(), to=object()),
    ):
        pass
    with (
        pytest.raises(SettingError, match="pictures= are written to a tracker"),
        hookviz.record(small(), pictures="0"),
    ):
        pass
