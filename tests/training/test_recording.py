"""Tests for what is written to trackers: by the real clients, offline, and read back."""

import copy
import io
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, distributed, nn
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile
from torch.utils.tensorboard import SummaryWriter
from torchvision.models import resnet18

import hookviz
from hookviz.errors import SettingError
from hookviz.training.training_log import TrainingLog
from tests.networks import Tiny, hook_count, random_input, seeded


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def first_gradients(network: nn.Module, steps: int = 2) -> list[torch.Tensor]:
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
        gradients = first_gradients(network)
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
            first_gradients(network)
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


LABEL = torch.tensor([2])


def loss_of(network: nn.Module, seed: int) -> Tensor:
    return nn.functional.cross_entropy(network(random_input(seed)), LABEL)


def norm_of(tensors: Any) -> float:
    return math.sqrt(sum(float(each.double().square().sum()) for each in tensors))


def test_an_optimisers_step_has_the_gradient_of_all_its_backward_passes() -> None:
    network = seeded(Tiny).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    gradients, updates = [], []
    with hookviz.record(network, layers=["conv1"], step=optimiser) as log:
        for start in (0, 3):
            optimiser.zero_grad()
            for seed in range(start, start + 3):
                (loss_of(network, seed) / 3).backward()  # type: ignore[no-untyped-call]
            own = [*network.conv1.parameters()]
            before = [each.detach().clone() for each in own]
            gradients.append(norm_of(each.grad for each in own))
            optimiser.step()
            assert len(log.rows) == len(gradients)  # there at once
            changes = (one - other for one, other in zip(own, before, strict=True))
            updates.append(norm_of(each.detach() for each in changes) / norm_of(before))
    assert [row.step for row in log.rows] == [0, 1]
    assert [row.gradient_norm for row in log.rows] == pytest.approx(gradients)
    assert [row.update_ratio for row in log.rows] == pytest.approx(updates, rel=1e-4)
    assert (hook_count(network), len(optimiser._optimizer_step_pre_hooks)) == (0, 0)


def test_a_scalers_factor_is_out_of_the_log_and_a_step_that_it_leaves_out_is_none() -> None:
    network = seeded(Tiny).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.0)
    plain = torch.autograd.grad(loss_of(network, 0), [*network.head.parameters()])
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with hookviz.record(network, layers=["head"], step=optimiser) as log:
        for factor in (1.0, math.inf, 1.0):
            optimiser.zero_grad()
            scaler.scale(loss_of(network, 0) * factor).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimiser)
            scaler.update()
    assert len(log.rows) == 2
    assert [row.gradient_norm for row in log.rows] == pytest.approx([norm_of(plain)] * 2, rel=1e-4)
    assert log.findings() == ()


def test_nothing_is_read_before_the_step_has_ended() -> None:
    network = seeded(Tiny).train()
    with hookviz.record(network) as log:
        loss_of(network, 0).backward()  # type: ignore[no-untyped-call]
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            loss_of(network, 1).backward()  # type: ignore[no-untyped-call]
    # The second pass begins with reading the first step, all numbers of one type at once.
    waits = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::is_nonzero"}
    assert not waits & {event.key for event in profiled.key_averages()}
    assert len({row.step for row in log.rows}) == 2


@contextmanager
def one_process(tmp_path: Path) -> Iterator[None]:
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


def halved(_state: object, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    """What all processes have together, here half of what this one has."""
    future = torch.futures.Future[Tensor]()
    future.set_result(bucket.buffer() / 2)
    return future


def test_gradients_are_those_that_processes_have_put_together(tmp_path: Path) -> None:
    network = seeded(Tiny).train()
    alone = torch.autograd.grad(loss_of(network, 0), [*network.conv1.parameters()])
    with one_process(tmp_path):
        parallel = DistributedDataParallel(network)
        parallel.register_comm_hook(None, halved)
        with hookviz.record(parallel, layers=["conv1"]) as log:
            loss_of(parallel, 0).backward()  # type: ignore[no-untyped-call]
    assert log.rows[0].gradient_norm == pytest.approx(norm_of(alone) / 2)


@pytest.fixture
def network() -> Tiny:
    return seeded(Tiny).train()


def train(network: nn.Module, steps: int, *, momentum: float = 0.9, side: int = 16) -> None:
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=momentum)
    for seed in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(random_input(seed, side)), LABEL).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


@pytest.mark.parametrize("every", [1, 2])
def test_training_is_the_same_to_the_last_bit(every: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = resnet18(weights=None, num_classes=5).eval()
        network.fc = nn.Sequential(nn.Dropout(0.5).train(), network.fc)
        other = copy.deepcopy(network)
        torch.manual_seed(1)
        with hookviz.record(network, every=every) as log:
            train(network, 3, side=32)
        torch.manual_seed(1)
        train(other, 3, side=32)
    assert {row.step for row in log.rows} == set(range(0, 3, every))
    assert len({row.layer for row in log.rows}) == 53
    for ours, theirs in zip(
        network.state_dict().values(), other.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)
    for ours, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.equal(ours.grad, theirs.grad)
    assert hook_count(network) == 0
    assert not any(parameter._backward_hooks for parameter in network.parameters())


def test_the_numbers_are_those_of_a_loop_by_hand(network: Tiny) -> None:
    other = copy.deepcopy(network)
    with hookviz.record(network, layers=["conv2", "relu"]) as log:
        train(network, 2)
    optimiser = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    rows = {(row.step, row.layer): row for row in log.rows}
    assert len(rows) == 4
    for step in range(2):
        optimiser.zero_grad()
        a = other.conv1(random_input(step)).relu()
        b = other.conv2(a)
        c = b.relu()
        nn.functional.cross_entropy(other.head(c.mean((2, 3))), LABEL).backward()  # type: ignore[no-untyped-call]
        before = torch.cat([each.detach().flatten() for each in other.conv2.parameters()])
        slopes = torch.cat([each.grad.flatten() for each in other.conv2.parameters()])  # type: ignore[union-attr]
        optimiser.step()
        after = torch.cat([each.detach().flatten() for each in other.conv2.parameters()])
        conv, relu = rows[step, "conv2"], rows[step, "relu"]
        assert conv.gradient_norm == pytest.approx(slopes.norm().item(), rel=1e-5)
        assert conv.weight_norm == pytest.approx(before.norm().item(), rel=1e-5)
        ratio = (after - before).norm() / before.norm()
        assert conv.update_ratio == pytest.approx(ratio.item(), rel=1e-4)
        assert conv.mean == pytest.approx(b.mean().item(), rel=1e-4)
        assert conv.deviation == pytest.approx(b.std(correction=0).item(), rel=1e-4)
        both = torch.cat([a.flatten(), c.flatten()])
        assert relu.mean == pytest.approx(both.mean().item(), rel=1e-4)
        assert relu.deviation == pytest.approx(both.std(correction=0).item(), rel=1e-4)
        assert (relu.gradient_norm, relu.weight_norm, relu.update_ratio) == (None, None, None)


def test_dead_units_are_those_that_are_zero_for_every_image() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU())
    conv = network[0]
    assert isinstance(conv, nn.Conv2d)
    with torch.no_grad():
        conv.weight.fill_(1)
        conv.bias.copy_(torch.tensor([0.0, -3.0, -30.0, -40.0]))  # type: ignore[union-attr]
    images = torch.tensor([1.0, 5.0]).reshape(2, 1, 1, 1)
    with hookviz.record(network) as log:
        network(images).sum().backward()
    assert [row.dead for row in log.rows] == [0.0, 0.5]


def test_steps_are_told_apart_by_backward_passes(network: Tiny) -> None:
    def passes(*seeds: int) -> Tensor:
        return torch.stack([network(random_input(seed)).sum() for seed in seeds]).sum()

    with hookviz.record(network, every=2, layers="conv1") as log:
        with torch.no_grad():
            passes(9)  # a validation
        passes(0, 1).backward()  # type: ignore[no-untyped-call]
        passes(2).backward()  # type: ignore[no-untyped-call]
        assert [row.step for row in log.rows] == [0]
        passes(3).backward()  # type: ignore[no-untyped-call]
    assert [row.step for row in log.rows] == [0, 2]
    # Gradients of all three passes have come together by then.
    parameters = list(network.conv1.parameters())
    norm = torch.cat([each.grad.flatten() for each in parameters]).norm()  # type: ignore[union-attr]
    assert log.rows[1].gradient_norm == pytest.approx(norm.item(), rel=1e-5)
    assert log.rows[1].update_ratio == 0


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_hooks_are_gone_and_what_was_recorded_stays(
    network: Tiny, error: type[BaseException]
) -> None:
    log = hookviz.TrainingLog()

    def fail() -> None:
        nonlocal log
        with hookviz.record(network) as log:
            train(network, 2)
            network(random_input(0))
            raise error

    with pytest.raises(error):
        fail()
    assert {row.step for row in log.rows} == {0, 1, 2}
    assert hook_count(network) == 0
    assert not any(parameter._backward_hooks for parameter in network.parameters())


@pytest.mark.parametrize("every", [0, True, 1.5, "2"])
def test_a_number_of_steps_that_means_nothing_is_refused(network: Tiny, every: Any) -> None:
    with pytest.raises(hookviz.SettingError, match="every="), hookviz.record(network, every=every):
        pytest.fail("the block must not run")


def half_dead(layer: nn.Module) -> nn.Module:
    """A layer of four channels, of which the last two put out 0 everywhere."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(1.0)
            parameter[2:] = 0.0
    return layer


class Norm(nn.LayerNorm):
    """A layer norm of maps, as ConvNeXt has it."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Turn(nn.Module):
    def forward(self, batch: Tensor) -> Tensor:
        return batch.transpose(1, 2)


VALUES = torch.rand(5, 3, 4, generator=torch.Generator().manual_seed(2)) + 0.5
MAPS = torch.rand(5, 4, 4, 4, generator=torch.Generator().manual_seed(2)) + 0.5


@pytest.mark.parametrize(
    ("network", "batch", "dead"),
    [
        # Tokens, (N, L, C): the last axis, also where there are as many tokens as channels.
        (nn.Sequential(half_dead(nn.Linear(4, 4)), nn.ReLU()), VALUES, [0.5, 0.5]),
        (nn.Sequential(half_dead(nn.Linear(4, 4)), nn.ReLU(True)), MAPS[0], [0.5, 0.5]),
        (nn.Sequential(half_dead(nn.LayerNorm(4)), nn.GELU(), nn.Dropout()), VALUES, [0.5] * 3),
        (nn.Sequential(half_dead(nn.RMSNorm(4)), nn.Identity()), VALUES, [0.5, 0.5]),
        (nn.Sequential(half_dead(nn.Linear(4, 4))), MAPS, [0.5]),
        # Sound, (N, C, L) and (C, L): the first but that of images.
        (nn.Sequential(half_dead(nn.Conv1d(3, 4, 1)), nn.ReLU()), VALUES, [0.5, 0.5]),
        (nn.Sequential(half_dead(nn.Conv1d(4, 4, 1)), nn.ReLU()), MAPS[0, 0], [0.5, 0.5]),
        (nn.Sequential(nn.Identity(), half_dead(nn.BatchNorm1d(4))), MAPS[0], [None, 0.5]),
        # Maps, with a norm of the person's own.
        (nn.Sequential(half_dead(nn.Conv2d(4, 4, 1)), nn.MaxPool2d(2)), MAPS, [0.5, 0.5]),
        (nn.Sequential(nn.Conv2d(4, 4, 1), half_dead(Norm(4))), MAPS[..., :3], [0.0, None]),
        # Turned around, the channels can't be told any more.
        (nn.Sequential(half_dead(nn.Linear(4, 4)), Turn(), nn.ReLU()), MAPS[0], [0.5, None, None]),
        (nn.Sequential(half_dead(nn.Linear(4, 4)), Turn(), nn.ReLU()), VALUES, [0.5, None, None]),
    ],
)
def test_dead_units_are_counted_along_the_axis_of_channels(
    network: nn.Module, batch: Tensor, dead: list[float | None]
) -> None:
    with hookviz.record(network) as log:
        network(batch).sum().backward()
    assert [row.dead for row in log.rows] == dead


def test_channels_are_known_by_layers_that_are_not_chosen_and_by_their_first_output() -> None:
    network = nn.Sequential(half_dead(nn.Linear(4, 4)), nn.ReLU())
    with hookviz.record(network, layers="1") as log:
        network(VALUES).sum().backward()
    assert [(row.layer, row.dead) for row in log.rows] == [("1", 0.5)]

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(4, 6, batch_first=True, bidirectional=True)
            self.attention = nn.MultiheadAttention(12, 1, batch_first=True)

        def forward(self, batch: Tensor) -> Tensor:
            features = self.rnn(batch)[0]
            total: Tensor = self.attention(features, features, features)[0]
            return total

    both = seeded(Both)
    with torch.no_grad():
        both.attention.out_proj.weight[9:] = 0.0
    with hookviz.record(both, layers=["rnn", "attention"]) as log:
        both(VALUES).sum().backward()
    assert [row.dead for row in log.rows] == [0.0, 0.25]


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("whole", [True, False])
def test_a_validation_is_no_part_of_the_step_before_it(without: Any, *, whole: bool) -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    other = copy.deepcopy(network)
    batch = torch.tensor([[1.0, 2.0, 3.0]])
    with hookviz.record(network) as log:
        for _ in range(2):
            network(batch).sum().backward()
            with without():
                (network if whole else network[0])(batch * 1000)
        with without():
            network(batch * 1000)
        network(batch)
        with without():  # before the step's backward pass
            network(batch * 1000)
    output = other[0](batch)
    assert {row.step for row in log.rows} == {0, 1, 2}
    for row in log.rows:
        expected = output if row.layer == "0" else output.relu()
        assert row.mean == pytest.approx(expected.mean().item(), rel=1e-5)
        assert row.deviation == pytest.approx(expected.std(correction=0).item(), rel=1e-5)


def test_a_validation_in_another_thread_is_no_part_of_the_step() -> None:
    batch = torch.tensor([[1.0, 2.0, 3.0]])

    class Waits(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            if torch.is_grad_enabled():  # in the midst of the training pass
                thread = threading.Thread(target=validate)
                thread.start()
                thread.join()
            return values

    def validate() -> None:
        with torch.no_grad():
            network(batch * 1000)

    network = nn.Sequential(nn.Linear(3, 3), Waits(), nn.ReLU())
    with hookviz.record(network, layers="0") as log:
        network(batch).sum().backward()
    (row,) = log.rows
    assert row.mean == pytest.approx(network[0](batch).mean().item())


def test_what_a_training_pass_computes_without_gradients_is_of_the_step() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = nn.Linear(3, 3)
            self.head = nn.Linear(3, 2)

        def forward(self, batch: Tensor) -> Tensor:
            with torch.no_grad():
                features = self.backbone(batch)
            scores: Tensor = self.head(features)
            return scores

    network = seeded(Frozen)
    batch = torch.ones(2, 3)
    with hookviz.record(network) as log:
        for _ in range(2):
            with pytest.raises(RuntimeError):
                network(batch[:, :2])
        network(batch).sum().backward()
        with torch.no_grad(), pytest.raises(RuntimeError):
            network(batch[:, :2])
    assert log.rows[0].mean == pytest.approx(network.backbone(batch).mean().item())


def test_a_pass_that_began_before_the_block_ends_as_it_would() -> None:
    class Opens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, batch: Tensor) -> Tensor:
            block.__enter__()
            scores: Tensor = self.inner(batch)
            return scores

    network = Opens()
    theirs = network.register_forward_hook(lambda *_: None)  # so that torch looks for hooks
    block = hookviz.record(network)
    network(torch.ones(1, 3))
    network.forward = network.inner.forward  # type: ignore[method-assign,assignment]
    network(torch.ones(1, 3)).sum().backward()
    with pytest.warns(RuntimeWarning, match="record saw no call of inner"):
        block.__exit__(None, None, None)
    theirs.remove()
    assert hook_count(network) == 0


def test_layers_that_are_taken_out_on_the_way_are_no_error() -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with hookviz.record(network) as log:
        network(torch.ones(1, 3)).sum().backward()
        del network[2]
        with pytest.warns(RuntimeWarning, match=r"can't look at the network itself.*'2'"):
            network(torch.ones(1, 3)).sum().backward()
    assert all(row.mean is not None for row in log.rows if row.step == 0)
    assert {row.mean for row in log.rows if row.step == 1} == {None}


def test_edits_are_made_in_each_pass_and_recorded(network: Tiny) -> None:
    with hookviz.record(network, layers=["relu"], edits={"relu": hookviz.edits.zero}) as log:
        train(network, 1)
    assert (log.rows[0].mean, log.rows[0].dead) == (0, 1)
    assert hook_count(network) == 0
